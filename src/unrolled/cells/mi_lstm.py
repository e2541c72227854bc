r"""The LSTM with multiplicative integration.

.. math::
    z = α ⊙ (W x) ⊙ (U h) + β_1 ⊙ (U h) + β_2 ⊙ (W x) + b,\; i, f, o = σ(z),\; g = \tanh(z_g),\;
    c' = f ⊙ c + i ⊙ g,\; h' = o ⊙ \tanh(c')

The state is [c; h], the gates stand in PyTorch's order i, f, g, o.

Source:
    Wu et al. (2016), arXiv:1606.06630.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from unrolled.cells.closed_form_ray import ClosedRay
from unrolled.cells.multiplicative_integration import IntegratedCell
from unrolled.kernels.elementwise import LSTMUpdate
from unrolled.linalg.activations import SIGMOID, TANH, Activation, mean_slope
from unrolled.linalg.operators import Structured, Term

__all__ = ["MILSTM"]

I, F, G, O = range(4)  # noqa: E741  # the products, in PyTorch's order

# Part 0 of the state is c', which the gates i, f, g reach; part 1 is h', which all four reach.
REACHED = ((0, I), (0, F), (0, G), (1, I), (1, F), (1, G), (1, O))


class MILSTM(IntegratedCell):
    """Three gates over a carried cell, integrated multiplicatively.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b exists.
    """

    name = "mi_lstm"
    products = (4, 4)
    carry = (0, 1)
    recurrent_terms = tuple(Term(part, gate, 2 + k) for k, (part, gate) in enumerate(REACHED))
    input_terms = tuple(Term(part, gate, 2 + len(REACHED) + k) for k, (part, gate) in enumerate(REACHED))

    gate: Activation = SIGMOID
    candidate: Activation = TANH
    squash: Activation = TANH

    def combine(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute c' and o ⊙ tanh(c')."""
        i, f, g, o = self.integrate(by_input, by_hidden).chunk(4, dim=-1)
        cell = self.gate(f) * carried + self.gate(i) * self.candidate(g)
        return cell, self.gate(o) * self.squash(cell)

    def slopes(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute what carries c to c' and to h', then the gains of U, then of W, as in ``REACHED``."""
        zi, zf, zg, zo = self.integrate(by_input, by_hidden).chunk(4, dim=-1)
        i, f, g, o = self.gate(zi), self.gate(zf), self.candidate(zg), self.gate(zo)
        cell = f * carried + i * g
        squashed = self.squash(cell)
        q = o * self.squash.slope(cell, squashed)
        inner = (
            g * self.gate.slope(zi, i),
            carried * self.gate.slope(zf, f),
            i * self.candidate.slope(zg, g),
        )
        slopes = (*inner, *(q * slope for slope in inner), squashed * self.gate.slope(zo, o))
        recurrent = self.hidden_gain(by_input).chunk(4, dim=-1)
        inputs = self.input_gain(by_hidden).chunk(4, dim=-1)
        return (
            f,
            q * f,
            *(slope * recurrent[gate] for slope, (_, gate) in zip(slopes, REACHED, strict=True)),
            *(slope * inputs[gate] for slope, (_, gate) in zip(slopes, REACHED, strict=True)),
        )

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence by a kernel."""
        if (self.gate, self.candidate, self.squash) != (SIGMOID, TANH, TANH):  # linearised
            return super().unroll(inputs, state)
        return self.run_gates(LSTMUpdate(), inputs, state)

    def gates(self, ray: ClosedRay) -> Structured:
        """Keep i, f, o and the ratio tanh(c')/c': c' = f ⊙ c + i ⊙ g, h' = o ⊙ (tanh(c')/c') ⊙ c'."""
        x, h, _ = ray.point(1.0)
        _, zf, _, zo = self.integrate(x, h).chunk(4, dim=-1)
        f = self.gate(zf)
        cell = ray.end[..., : self.hidden_size]
        ratio = self.gate(zo) * mean_slope(self.squash, torch.zeros_like(cell), cell)
        return ray.diagonal((f, ratio * f))

    def first_order(self) -> MILSTM:
        """Replace σ by 1/2 + x/4 and both tanh by x; the product of input and state stays."""
        surrogate = copy.copy(self)
        surrogate.gate = self.gate.first_order()
        surrogate.candidate = self.candidate.first_order()
        surrogate.squash = self.squash.first_order()
        return surrogate
