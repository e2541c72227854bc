r"""The long short-term memory, with PyTorch's gate order i, f, g, o and its optional projection.

.. math::
    i, f, o = σ(W x + U h + b),\; g = \tanh(W_g x + U_g h + b_g),\;
    c' = f ⊙ c + i ⊙ g,\; h' = o ⊙ \tanh(c')

The state is [c; h]; with q = o (1 - tanh² c'), the Jacobian's blocks are

.. math::
    B = \mathrm{diag}(f),\;
    D = \mathrm{diag}(c f(1-f)) U_f + \mathrm{diag}(g i(1-i)) U_i + \mathrm{diag}(i(1-g²)) U_g,\;
    E = \mathrm{diag}(q) B,\; F = \mathrm{diag}(q) D + \mathrm{diag}(\tanh(c') o(1-o)) U_o

Source:
    Hochreiter and Schmidhuber (1997); Gers et al. (2000); Sak et al. (2014), arXiv:1402.1128, for the projection;
    Implicit n-grams, table 2 and appendix F.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.closed_form import ClosedCell
from unrolled.cells.closed_form_ray import ClosedRay, ClosedRun
from unrolled.kernels.base import run_fused, run_kernel
from unrolled.kernels.elementwise import LSTMUpdate
from unrolled.kernels.gated import GatedKernel
from unrolled.kernels.products import MatrixProduct
from unrolled.linalg.activations import SIGMOID, TANH, Activation, mean_slope
from unrolled.linalg.operators import Structured, Term

__all__ = ["LSTM"]

I, F_, G, O = range(4)  # noqa: E741  # the products, in PyTorch's order


class LSTM(ClosedCell):
    """Three gates over a carried cell.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: the length of a projected output, 0 for none.
    """

    name = "lstm"
    torch_type = nn.LSTM
    products = (4, 4)
    carry = (0, 4)
    input_terms = recurrent_terms = (
        Term(0, I, 1),
        Term(0, F_, 2),
        Term(0, G, 3),
        Term(1, I, 5),
        Term(1, F_, 6),
        Term(1, G, 7),
        Term(1, O, 8),
    )

    gate: Activation = SIGMOID
    candidate: Activation = TANH
    squash: Activation = TANH

    def combine(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute c' and o ⊙ tanh(c')."""
        i, f, g, o = (by_input + by_hidden).chunk(4, dim=-1)
        cell = self.gate(f) * carried + self.gate(i) * self.candidate(g)
        return cell, self.gate(o) * self.squash(cell)

    def slopes(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute f and the gains of U_i, U_f, U_g for c'; the same times q, and the gain of U_o, for h'."""
        f, by_i, by_f, by_g, q, by_o = self.factors(by_input, by_hidden, carried)
        return f, by_i, by_f, by_g, q * f, q * by_i, q * by_f, q * by_g, by_o

    def factors(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute f, the gains of U_i, U_f, U_g for c', then q and the gain of U_o for h' = q ⊙ δc' + ….

        Args:
            by_input: z^x, shape (…, 4·d).
            by_hidden: z^h, shape (…, 4·d).
            carried: c, shape (…, d).

        Returns:
            Six tensors, each (…, d).
        """
        zi, zf, zg, zo = (by_input + by_hidden).chunk(4, dim=-1)
        i, f, g, o = self.gate(zi), self.gate(zf), self.candidate(zg), self.gate(zo)
        cell = f * carried + i * g
        squashed = self.squash(cell)
        return (
            f,
            g * self.gate.slope(zi, i),
            carried * self.gate.slope(zf, f),
            i * self.candidate.slope(zg, g),
            o * self.squash.slope(cell, squashed),
            squashed * self.gate.slope(zo, o),
        )

    @property
    def linearised(self) -> bool:
        """Whether an activation has been replaced."""
        return (self.gate, self.candidate, self.squash) != (SIGMOID, TANH, TANH)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence: the products of all inputs are one, and the loop is a kernel."""
        if self.linearised or self.weight_hr is not None:
            return super().unroll(inputs, state)
        first = self.checked_start(inputs, state)
        bias = None if self.bias_ih is None or self.bias_hh is None else self.bias_ih + self.bias_hh
        by_input = linear(inputs, self.weight_ih, bias)
        return run_kernel(GatedKernel(MatrixProduct(), LSTMUpdate()), by_input, first, self.weight_hh)

    def outputs(self, inputs: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run the cell as torch.nn.LSTM runs, which keeps the cells of the last step alone."""
        if self.linearised:
            return super().outputs(inputs, state)
        d, first = self.hidden_size, self.checked_start(inputs, state)

        def fast(x: Tensor, s: Tensor, *weights: Tensor | None) -> tuple[Tensor, ...]:
            given = [weight for weight in weights if weight is not None]
            before = (s[None, :, d:].contiguous(), s[None, :, :d].contiguous())
            hidden, h, c = torch.lstm(x, before, given, self.bias_ih is not None, 1, 0.0, self.training, False, False)
            return hidden, torch.cat((c[0], h[0]), dim=-1)

        def plain(
            x: Tensor, s: Tensor, weight_ih: Tensor, weight_hh: Tensor, *others: Tensor | None
        ) -> tuple[Tensor, ...]:
            bias_ih, bias_hh, weight_hr = others
            cell, hidden, outputs = s[:, :d], s[:, d:], []
            for by_input in linear(x, weight_ih, bias_ih):
                cell, hidden = self.combine(by_input, linear(hidden, weight_hh, bias_hh), cell)
                hidden = hidden if weight_hr is None else linear(hidden, weight_hr)
                outputs.append(hidden)
            return torch.stack(outputs), torch.cat((cell, hidden), dim=-1)

        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, self.weight_hr)
        hidden, last = run_fused(fast, plain, inputs, first, *weights)
        return hidden, last

    def draw(self, trace: ClosedRun, origin: Tensor) -> LSTMRay:
        """Draw the ray, whose points have a factored Jacobian."""
        return LSTMRay(trace, origin)

    def gates(self, ray: ClosedRay) -> Structured:
        """Keep i, f, o and the ratio tanh(c')/c': c' = f ⊙ c + i ⊙ g, h' = o ⊙ (tanh(c')/c') ⊙ c'.

        Source:
            Murdoch and Szlam (2017), arXiv:1702.02540; Du et al. (2019), arXiv:1903.11258.
        """
        x, h, _ = ray.point(1.0)
        d = self.hidden_size
        f, o = (self.gate(x[..., k * d : (k + 1) * d] + h[..., k * d : (k + 1) * d]) for k in (F_, O))
        cell = ray.end[..., :d]
        ratio = o * mean_slope(self.squash, cell.new_zeros(()), cell)
        return ray.diagonal((f, ratio * f))

    def first_order(self) -> LSTM:
        """Replace σ by 1/2 + x/4 and both tanh by x.

        Source:
            Sequence-level features, eq. 16.
        """
        surrogate = LSTM.from_weights(dict(self.named_parameters()))
        surrogate.gate = self.gate.first_order()
        surrogate.candidate = self.candidate.first_order()
        surrogate.squash = self.squash.first_order()
        return surrogate


class LSTMRay(ClosedRay):
    """A ray at a point of which h' follows from c': E = diag(q) B, F = diag(q) D + diag(…) U_o.

    The mean of such products along the ray is not the product of means, so averages keep the nine slopes apart.
    """

    cell: LSTM

    def at(self, alpha: float) -> Structured:
        """Take the Jacobian at one point, its two rows sharing what they share."""
        whole = self.structured(self.coefficients(lambda steps: self.cell.factors(*self.point(alpha, steps))))
        terms = (*LSTM.recurrent_terms[:3], Term(1, O, 5))
        return replace(whole, carry=(0, None), recurrent_terms=terms, input_terms=terms, mix=4)
