"""A new cell, written from its equations: the one that CONTRIBUTING walks through."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import torch
from torch import Tensor

import unrolled
import unrolled.cells
from reference import ngrams
from unrolled.cells.capabilities import FirstOrderCell, GatedCell
from unrolled.cells.closed_form import ClosedCell
from unrolled.cells.recurrent import Recurrent
from unrolled.errors import UsageError
from unrolled.expansions import EXPANSIONS
from unrolled.linalg.activations import SIGMOID, TANH
from unrolled.linalg.quadrature import Named
from unrolled.linalg.structured import Term
from unrolled.testing import check_cell

E, D, B, T = 3, 5, 2, 6


class MinimalGatedUnit(ClosedCell, GatedCell, FirstOrderCell):
    r"""The minimal gated unit: a GRU whose single gate both resets and updates.

    .. math::
        f = σ(W_f x + U_f h + b_f),\; n = \tanh(W_n x + b_n + f ⊙ (U_n h + b_n')),\; h' = (1 - f) ⊙ h + f ⊙ n

    Source:
        Zhou et al. (2016), arXiv:1603.09420; here the gate follows the product, as in torch.nn.GRU.
    """

    name = "mgu"
    products = (2, 2)  # W_f x, W_n x; U_f h, U_n h
    carry = (Term("hidden", "keep"),)
    recurrent_terms = (Term("hidden", "gate", 0), Term("hidden", "candidate", 1))
    input_terms = (Term("hidden", "gate", 0), Term("hidden", "candidate_input", 1))

    gate = SIGMOID
    candidate = TANH

    def elementwise(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute (1 - f) ⊙ h + f ⊙ n."""
        xf, xn = from_input.chunk(2, dim=-1)
        hf, hn = from_hidden.chunk(2, dim=-1)
        f = self.gate(xf + hf)
        n = self.candidate(xn + f * hn)
        return ((1 - f) * carried + f * n,)

    def fixed_gate_slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Keep f: h' = (1 - f) ⊙ h + f ⊙ n."""
        f, _ = (from_input + from_hidden).chunk(2, dim=-1)
        return {"keep": 1 - self.gate(f)}


class FastMinimalGatedUnit(MinimalGatedUnit):
    """The same cell with formulas for its slopes, which are faster than forward mode."""

    def slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        xf, xn = from_input.chunk(2, dim=-1)
        hf, hn = from_hidden.chunk(2, dim=-1)
        f, z = self.gate(xf + hf), xf + hf
        a = xn + f * hn
        n = self.candidate(a)
        dn = f * self.candidate.slope(a, n)
        return {
            "keep": 1 - f,
            "gate": (n - carried + dn * hn) * self.gate.slope(z, f),
            "candidate": dn * f,
            "candidate_input": dn,
        }


def made(kind=MinimalGatedUnit):
    torch.manual_seed(0)
    cell = kind(E, D).double()
    for parameter in cell.parameters():
        parameter.requires_grad_(False).mul_(2)
    return cell, torch.randn(T, B, E).double()


def test_contributing_shows_this_cell():
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    assert inspect.getsource(MinimalGatedUnit).strip() in text


def test_it_is_the_equations():
    cell, x = made()
    h, x = torch.randn(D).double(), x[0, 0]
    (Wf, Wn), (Uf, Un) = cell.weight_ih.split(D), cell.weight_hh.split(D)
    (bf, bn), (cf, cn) = cell.bias_ih.split(D), cell.bias_hh.split(D)
    f = torch.sigmoid(Wf @ x + bf + Uf @ h + cf)
    n = torch.tanh(Wn @ x + bn + f * (Un @ h + cn))
    torch.testing.assert_close(cell.step(x, h), (1 - f) * h + f * n)


@pytest.mark.parametrize("kind", [MinimalGatedUnit, FastMinimalGatedUnit])
def test_it_passes_every_check(kind):
    check_cell(lambda: kind(E, D))


@pytest.mark.parametrize("expansion", EXPANSIONS.names())
def test_every_expansion_opens_it(expansion):
    cell, x = made()
    found = unrolled.decompose(cell, x, expansion=expansion, tolerance=1e-12)
    assert (float(found.residual().max()) < 1e-10) == found.expansion.exact
    fast = unrolled.decompose(made(FastMinimalGatedUnit)[0], x, expansion=expansion, tolerance=1e-12)
    torch.testing.assert_close(fast.vectors(), found.vectors())
    stack = Recurrent(MinimalGatedUnit, E, D, num_layers=2, bidirectional=True).double()
    opened = unrolled.decompose(stack, x, expansion=expansion, tolerance=1e-12)
    assert (float(opened.residual().max()) < 1e-10) == opened.expansion.exact


def test_gates_and_activation_are_what_the_equations_say():
    cell, x = made()
    states = cell.unroll(x)[:, 0]
    (Wf, Wn), (Uf, Un), b = cell.weight_ih.split(D), cell.weight_hh.split(D), cell.bias_ih
    steps, surrogate = [], []
    for t in range(T):
        f = torch.sigmoid(Wf @ x[t, 0] + b[:D] + Uf @ states[t] + cell.bias_hh[:D])
        steps.append((states[t + 1] - (1 - f) * states[t], torch.diag(1 - f)))
        xf, xn = Wf @ x[t, 0] + b[:D] + cell.bias_hh[:D], Wn @ x[t, 0] + b[D:]
        kept, m = 0.5 + 0.25 * xf, cell.bias_hh[D:]  # f ≈ 1/2 + z/4 and tanh(a) ≈ a
        n = xn + kept * m
        by_gate = 0.25 * (n + kept * m)
        A = torch.diag(1 - kept) + torch.diag(by_gate) @ Uf + torch.diag(kept * kept) @ Un
        surrogate.append((kept * n, A))
    found = unrolled.decompose(cell, x, expansion="gates").vectors()[0]
    torch.testing.assert_close(found, ngrams(steps))
    torch.testing.assert_close(unrolled.decompose(cell, x, expansion="activation").vectors()[0], ngrams(surrogate))


def test_what_it_does_not_declare_is_refused():
    class Bare(ClosedCell):
        name, products = "bare", (2, 2)
        carry, recurrent_terms, input_terms = (
            MinimalGatedUnit.carry,
            MinimalGatedUnit.recurrent_terms,
            MinimalGatedUnit.input_terms,
        )
        gate, candidate, elementwise = SIGMOID, TANH, MinimalGatedUnit.elementwise

    check_cell(lambda: Bare(E, D))
    with pytest.raises(UsageError, match="declares no gates"):
        unrolled.decompose(Bare(E, D), torch.randn(T, 1, E), expansion="gates")
    with pytest.raises(UsageError, match="no activation expansion"):
        unrolled.decompose(Bare(E, D), torch.randn(T, 1, E), expansion="activation")


def test_a_network_of_it_is_built_by_its_class():
    """Two layers of two directions, opened exactly, with the states of cells that are called step by step."""
    torch.manual_seed(0)
    network = unrolled.cells.recurrent(MinimalGatedUnit, E, D, 2, bidirectional=True, dtype=torch.float64)
    x = torch.randn(T, B, E, dtype=torch.float64)
    below = x
    for layer in range(2):
        ways = []
        for way in range(2):
            state, outputs = torch.zeros(B, D, dtype=torch.float64), []
            for step in below.flip(0) if way else below:
                state = network.cell(layer, way).step(step, state)
                outputs.append(state)
            ways.append(torch.stack(outputs[::-1] if way else outputs))
        below = torch.cat(ways, dim=-1)
    torch.testing.assert_close(network(x)[0], below)
    assert float(unrolled.decompose(network, x).residual().max()) < 1e-12
    assert float(unrolled.decompose(network, x, expansion="zero").residual().max()) > 1e-3  # the control
