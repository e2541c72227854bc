r"""Multiplicative integration: pre-activations contain the element-wise product of the two matrix products.

.. math:: W x + U h + b \quad→\quad z = α ⊙ (W x) ⊙ (U h) + β_1 ⊙ (U h) + β_2 ⊙ (W x) + b

so that ∂z/∂(U h) = α ⊙ (W x) + β_1 and ∂z/∂(W x) = α ⊙ (U h) + β_2. The rest of each cell is its ordinary self.

Source:
    Wu et al. (2016), On multiplicative integration with recurrent neural networks, arXiv:1606.06630.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.capabilities import FirstOrderCell, GatedCell, repeated_diagonals, repeated_terms
from unrolled.cells.closed_form import ClosedCell
from unrolled.kernels.base import run_kernel
from unrolled.kernels.elementwise import ActivationUpdate, GRUUpdate, LSTMUpdate
from unrolled.kernels.gated import ElementwiseUpdate, GatedKernel
from unrolled.kernels.products import ScaledProduct, gain_and_offset
from unrolled.linalg.activations import SIGMOID, TANH, Activation, mean_slope
from unrolled.linalg.quadrature import Named
from unrolled.linalg.structured import Term

__all__ = ["MIGRU", "MILSTM", "MIRNN", "IntegratedCell"]


def _input_terms_of(*recurrent: Term) -> tuple[Term, ...]:
    """Repeat the terms of U h for W x; their diagonals get the suffix ``_input``."""
    return tuple(Term(term.part, f"{term.diagonal}_input", term.product) for term in recurrent)


class IntegratedCell(ClosedCell, GatedCell, FirstOrderCell):
    """A closed cell whose pre-activations are integrated multiplicatively.

    α, β_1 and β_2 start at one, so that the cell starts as its ordinary self plus the product. The paper chooses their
    initial values for each task.

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: Number of units d.
        bias: Whether b exists. It is a single vector, because W x and U h enter their product without a bias.
    """

    bias: nn.Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(input_size, hidden_size, bias=False)
        size = self.weight_ih.shape[0]
        self.alpha = nn.Parameter(torch.empty(size))
        self.beta_hidden = nn.Parameter(torch.empty(size))
        self.beta_input = nn.Parameter(torch.empty(size))
        self.register_parameter("bias", nn.Parameter(torch.empty(size)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and bias from U(-1/√d, 1/√d); set α, β_1 and β_2 to one."""
        super().reset_parameters()
        for name, parameter in self.named_parameters():
            if name in ("alpha", "beta_hidden", "beta_input"):
                nn.init.ones_(parameter)

    def hidden_gain(self, from_input: Tensor) -> Tensor:
        """Compute ∂z/∂(U h) = α ⊙ (W x) + β_1."""
        return self.alpha * from_input + self.beta_hidden

    def input_gain(self, from_hidden: Tensor) -> Tensor:
        """Compute ∂z/∂(W x) = α ⊙ (U h) + β_2."""
        return self.alpha * from_hidden + self.beta_input

    def integrate(self, from_input: Tensor, from_hidden: Tensor) -> Tensor:
        """Compute z from W x and U h."""
        z = self.hidden_gain(from_input) * from_hidden + self.beta_input * from_input
        return z if self.bias is None else z + self.bias

    def run_gates(self, gates: ElementwiseUpdate, inputs: Tensor, state: Tensor | None, *own: Tensor | None) -> Tensor:
        """Run the cell with a kernel: the gain and the offset of U h are known before the loop.

        Args:
            gates: The element-wise part of the kernel.
            inputs: x_1 … x_T, shape (time, batch, input).
            state: s_0, shape (batch, state); by default the cell's own.
            *own: Weights of the gates.
        """
        first, from_input = self.checked_initial_state(inputs, state), linear(inputs, self.weight_ih)
        gain, offset = gain_and_offset(from_input, self.alpha, self.beta_hidden, self.beta_input, self.bias)
        return run_kernel(GatedKernel(ScaledProduct(), gates), offset, first, *own, self.weight_hh, gain)


class MIRNN(IntegratedCell):
    r"""The Elman network with multiplicative integration: h' = tanh(z)."""

    name = "mi_rnn"
    products = (1, 1)
    recurrent_terms = (Term("hidden", "slope"),)
    input_terms = _input_terms_of(*recurrent_terms)

    activation: Activation = TANH

    def elementwise(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute φ(z)."""
        return (self.activation(self.integrate(from_input, from_hidden)),)

    def slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Compute φ'(z) times the gain of U h, and of W x."""
        z = self.integrate(from_input, from_hidden)
        slope = self.activation.slope(z, self.activation(z))
        return {"slope": slope * self.hidden_gain(from_input), "slope_input": slope * self.input_gain(from_hidden)}

    def fixed_gate_slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Keep the input's gain on U h, and the ratio (φ(z) - φ(0))/z."""
        z = self.integrate(from_input, from_hidden)
        ratio = mean_slope(self.activation, torch.zeros_like(z), z)
        return {"slope": ratio * self.hidden_gain(from_input), "slope_input": ratio * self.beta_input}

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence with a kernel."""
        if self.activation != TANH:  # linearised
            return super().unroll(inputs, state)
        return self.run_gates(ActivationUpdate(), inputs, state)


class MIGRU(IntegratedCell):
    r"""The GRU with multiplicative integration, in PyTorch's form.

    .. math::
        r, z = σ(α ⊙ (W x) ⊙ (U h) + β_1 ⊙ (U h) + β_2 ⊙ (W x) + b),\;
        u = r ⊙ (U_n h),\; n = \tanh(α_n ⊙ (W_n x) ⊙ u + β_{1n} ⊙ u + β_{2n} ⊙ (W_n x) + b_n),\;
        h' = (1 - z) ⊙ n + z ⊙ h

    As in torch.nn.GRU the reset gate comes after the product and z is the share that is kept.
    """

    name = "mi_gru"
    products = (3, 3)
    carry = (Term("hidden", "keep"),)
    recurrent_terms = (Term("hidden", "reset", 0), Term("hidden", "update", 1), Term("hidden", "candidate", 2))
    input_terms = _input_terms_of(*recurrent_terms)

    gate: Activation = SIGMOID
    candidate: Activation = TANH

    def _reset(self, from_input: Tensor, from_hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute U h after the reset gate, the pre-activations, and both gates."""
        d = self.hidden_size
        gates = self.gate(self.integrate(from_input, from_hidden)[..., : 2 * d])
        passed = torch.cat((from_hidden[..., : 2 * d], gates[..., :d] * from_hidden[..., 2 * d :]), dim=-1)
        return passed, self.integrate(from_input, passed), gates

    def elementwise(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute (1 - z) ⊙ n + z ⊙ h."""
        d = self.hidden_size
        _, pre, gates = self._reset(from_input, from_hidden)
        n = self.candidate(pre[..., 2 * d :])
        return (n + gates[..., d:] * (carried - n),)

    def slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Compute z and the diagonals of U_r, U_z, U_n, W_r, W_z and W_n."""
        d = self.hidden_size
        passed, pre, gates = self._reset(from_input, from_hidden)
        r, z = gates.chunk(2, dim=-1)
        n = self.candidate(pre[..., 2 * d :])
        dr, dz = self.gate.slope(pre[..., : 2 * d], gates).chunk(2, dim=-1)
        hr, hz, hn = self.hidden_gain(from_input).chunk(3, dim=-1)
        xr, xz, xn = self.input_gain(passed).chunk(3, dim=-1)
        by_n = (1 - z) * self.candidate.slope(pre[..., 2 * d :], n)
        by_r = by_n * hn * from_hidden[..., 2 * d :] * dr
        by_z = (carried - n) * dz
        return {
            "keep": z,
            "reset": by_r * hr,
            "update": by_z * hz,
            "candidate": by_n * hn * r,
            "reset_input": by_r * xr,
            "update_input": by_z * xz,
            "candidate_input": by_n * xn,
        }

    def fixed_gate_slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Keep z: h' = z ⊙ h + (1 - z) ⊙ n."""
        return {"keep": self._reset(from_input, from_hidden)[2][..., self.hidden_size :]}

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence with a kernel."""
        if (self.gate, self.candidate) != (SIGMOID, TANH):  # linearised
            return super().unroll(inputs, state)
        return self.run_gates(GRUUpdate(), inputs, state, None)


class MILSTM(IntegratedCell):
    r"""The LSTM with multiplicative integration.

    .. math:: i, f, o = σ(z),\; g = \tanh(z_g),\; c' = f ⊙ c + i ⊙ g,\; h' = o ⊙ \tanh(c')

    The state is [c; h]; the gates have PyTorch's order i, f, g, o.
    """

    name = "mi_lstm"
    products = (4, 4)
    parts = ("cell", "hidden")
    carry = repeated_terms(Term("cell", "keep"))
    recurrent_terms = (
        *repeated_terms(Term("cell", "input", 0), Term("cell", "forget", 1), Term("cell", "candidate", 2)),
        Term("hidden", "output", 3),
    )
    input_terms = _input_terms_of(*recurrent_terms)

    gate: Activation = SIGMOID
    candidate: Activation = TANH
    squash: Activation = TANH

    def elementwise(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute c' and o ⊙ tanh(c')."""
        i, f, g, o = self.integrate(from_input, from_hidden).chunk(4, dim=-1)
        cell = self.gate(f) * carried + self.gate(i) * self.candidate(g)
        return cell, self.gate(o) * self.squash(cell)

    def slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Compute the slopes of the ordinary LSTM, times the gains of U h and of W x."""
        zi, zf, zg, zo = self.integrate(from_input, from_hidden).chunk(4, dim=-1)
        i, f, g, o = self.gate(zi), self.gate(zf), self.candidate(zg), self.gate(zo)
        cell = f * carried + i * g
        squashed = self.squash(cell)
        row = {
            "input": g * self.gate.slope(zi, i),
            "forget": carried * self.gate.slope(zf, f),
            "candidate": i * self.candidate.slope(zg, g),
        }
        q = o * self.squash.slope(cell, squashed)
        slopes = repeated_diagonals(row, q) | {"output": squashed * self.gate.slope(zo, o)}
        recurrent = self.hidden_gain(from_input).chunk(4, dim=-1)
        inputs = self.input_gain(from_hidden).chunk(4, dim=-1)
        diagonals = repeated_diagonals({"keep": f}, q)
        for term in self.recurrent_terms:
            diagonals[term.diagonal] = slopes[term.diagonal] * recurrent[term.product]
            diagonals[f"{term.diagonal}_input"] = slopes[term.diagonal] * inputs[term.product]
        return diagonals

    def fixed_gate_slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Keep i, f, o and the ratio tanh(c')/c': c' = f ⊙ c + i ⊙ g, h' = o ⊙ (tanh(c')/c') ⊙ c'."""
        _, f, _, o = (self.gate(z) for z in self.integrate(from_input, from_hidden).chunk(4, dim=-1))
        cell, _ = self.elementwise(from_input, from_hidden, carried)
        return repeated_diagonals({"keep": f}, o * mean_slope(self.squash, cell.new_zeros(()), cell))

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence with a kernel."""
        if (self.gate, self.candidate, self.squash) != (SIGMOID, TANH, TANH):  # linearised
            return super().unroll(inputs, state)
        return self.run_gates(LSTMUpdate(), inputs, state)
