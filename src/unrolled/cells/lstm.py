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

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.capabilities import (
    ActivatedCell,
    FirstOrderCell,
    GatedCell,
    Point,
    ShareSlopesCell,
    repeated_diagonals,
    repeated_terms,
)
from unrolled.cells.closed_form import ClosedCell
from unrolled.kernels.base import run_fused, run_kernel
from unrolled.kernels.elementwise import LSTMUpdate
from unrolled.kernels.gated import GatedKernel
from unrolled.kernels.products import MatrixProduct
from unrolled.linalg.activations import (
    SIGMOID,
    TANH,
    Activation,
    mean_slope,
    slope_from_zero,
    slope_of_step,
    with_share,
)
from unrolled.linalg.quadrature import Named
from unrolled.linalg.structured import Term

__all__ = ["LSTM"]

I, F, G, O = range(4)  # noqa: E741  # the products, in PyTorch's order


class LSTM(ActivatedCell, ClosedCell, GatedCell, FirstOrderCell, ShareSlopesCell):
    """Three gates and a carried cell.

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: Number of units d.
        bias: Whether b and b' exist.
        proj_size: Length of the projected hidden output; 0 for no projection.
    """

    name = "lstm"
    torch_type = nn.LSTM
    products = (4, 4)
    parts = ("cell", "hidden")
    carry = repeated_terms(Term("cell", "keep"))
    input_terms = recurrent_terms = (
        *repeated_terms(Term("cell", "input", I), Term("cell", "forget", F), Term("cell", "candidate", G)),
        Term("hidden", "output", O),
    )
    mix = "hidden_from_cell"

    gate: Activation = SIGMOID
    candidate: Activation = TANH
    squash: Activation = TANH

    def activations(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Compute i, f, g, o, c' and tanh(c')."""
        values = self._gates(from_input, from_hidden)
        cell = torch.addcmul(values["i"] * values["g"], values["f"], carried)
        return values | {"cell": cell, "squashed": self.squash(cell)}

    def _gates(self, from_input: Tensor, from_hidden: Tensor) -> Named:
        # one sum a gate: what is made of it is contiguous, and an activation of that takes half the time
        zi, zf, zg, zo = map(torch.add, from_input.chunk(4, dim=-1), from_hidden.chunk(4, dim=-1))
        return {"i": self.gate(zi), "f": self.gate(zf), "g": self.candidate(zg), "o": self.gate(zo)}

    def parts_of(self, values: Named, carried: Tensor) -> tuple[Tensor, ...]:
        """Return c' and o ⊙ tanh(c')."""
        return values["cell"], values["o"] * values["squashed"]

    def carry_through(self, from_input: Tensor, from_hidden: Tensor, first: Tensor) -> tuple[Tensor, Named]:
        """Compute all gates at once; only c' = f ⊙ c + i ⊙ g is left for each step."""
        values = self._gates(from_input, from_hidden)
        whole = torch.cat((first[None], values["i"] * values["g"]))
        for f_t, before, cell in zip(values["f"], whole, whole[1:], strict=False):
            cell.addcmul_(f_t, before)
        return whole[:-1], values | {"cell": whole[1:], "squashed": self.squash(whole[1:])}

    def slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Compute the diagonals of c, U_i, U_f and U_g for c', the same for h', and that of U_o."""
        diagonals = self.factored_slopes(from_input, from_hidden, carried)
        q, by_output = diagonals.pop("hidden_from_cell"), diagonals.pop("output")
        return repeated_diagonals(diagonals, q) | {"output": by_output}

    def factored_slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Compute the diagonals for c', then q and the diagonal of U_o: h' follows from c' at a single point."""
        zi, zf, zg, zo = (from_input + from_hidden).chunk(4, dim=-1)
        i, f, g, o = self.gate(zi), self.gate(zf), self.candidate(zg), self.gate(zo)
        cell = f * carried + i * g
        squashed = self.squash(cell)
        return {
            "keep": f,
            "input": g * self.gate.slope(zi, i),
            "forget": carried * self.gate.slope(zf, f),
            "candidate": i * self.candidate.slope(zg, g),
            "hidden_from_cell": o * self.squash.slope(cell, squashed),
            "output": squashed * self.gate.slope(zo, o),
        }

    def secant_slopes(self, origin: Point, end: Point) -> Named:
        r"""Compute the diagonals for c', then those that take Δc' and U_o h to h'.

        .. math::
            Δc' = \tfrac12 (f_0 + f) ⊙ c + \tfrac12 S_f c ⊙ U_f h + \tfrac12 (i_0 + i) S_g ⊙ U_g h
            + \tfrac12 (g_0 + g) S_i ⊙ U_i h, \quad
            Δh' = \tfrac12 (o_0 + o) S_c ⊙ Δc' + \tfrac12 (\tanh c'_0 + \tanh c') S_o ⊙ U_o h
        """
        before, after = self.values_at(origin), self.values_at(end)

        def slope(activation: Activation, name: str, product: int) -> Tensor:
            step = origin.pre_activation_step(end, product, self.hidden_size)
            return slope_of_step(activation, step, before[name], after[name])

        def mean(name: str) -> Tensor:
            return torch.lerp(before[name], after[name], 0.5)

        rise = after["cell"] - before["cell"]
        slope_c = slope_of_step(self.squash, rise, before["squashed"], after["squashed"])
        return {
            "keep": mean("f"),
            "input": mean("g").mul_(slope(self.gate, "i", I)),
            "forget": torch.lerp(origin.carried, end.carried, 0.5).mul_(slope(self.gate, "f", F)),
            "candidate": mean("i").mul_(slope(self.candidate, "g", G)),
            "hidden_from_cell": mean("o").mul_(slope_c),
            "output": mean("squashed").mul_(slope(self.gate, "o", O)),
        }

    def alone_slopes(self, end: Point, share: float) -> Named:
        """Compute the same diagonals but for "keep" and "forget", for lines from zero, gates being ½ without value."""
        zi, zg, zo = (end.pre_activation(k, self.hidden_size) for k in (I, G, O))
        i, _, g, o, cell, squashed = self.values_at(end).values()
        return {
            "input": slope_from_zero(self.gate, zi, i).mul_(g).mul_(1 - share),
            "candidate": slope_from_zero(self.candidate, zg, g).mul_(with_share(self.gate, i, share)),
            "hidden_from_cell": slope_from_zero(self.squash, cell, squashed).mul_(with_share(self.gate, o, share)),
            "output": slope_from_zero(self.gate, zo, o).mul_(squashed).mul_(1 - share),
        }

    def share_slopes(self, end: Point, share: float) -> Named:
        """Compute the same diagonals for lines from zero."""
        value, z = self.values_at(end)["f"], end.pre_activation(F, self.hidden_size)
        forget = slope_from_zero(self.gate, z, value).mul_(end.carried).mul_(1 - share)
        return {"keep": with_share(self.gate, value, share), "forget": forget, **self.alone_slopes(end, share)}

    def fixed_gate_slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Keep i, f, o and the ratio tanh(c')/c': c' = f ⊙ c + i ⊙ g, h' = o ⊙ (tanh(c')/c') ⊙ c'.

        Source:
            Murdoch and Szlam (2017), arXiv:1702.02540; Du et al. (2019), arXiv:1903.11258.
        """
        i, f, g, o = (from_input + from_hidden).chunk(4, dim=-1)
        f, o = self.gate(f), self.gate(o)
        cell = torch.addcmul(f * carried, self.gate(i), self.candidate(g))
        return repeated_diagonals({"keep": f}, o * mean_slope(self.squash, cell.new_zeros(()), cell))

    @property
    def linearised(self) -> bool:
        """Whether an activation has been replaced."""
        return (self.gate, self.candidate, self.squash) != (SIGMOID, TANH, TANH)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence with a kernel."""
        if self.linearised or self.weight_hr is not None:
            return super().unroll(inputs, state)
        first = self.checked_initial_state(inputs, state)
        bias = None if self.bias_ih is None or self.bias_hh is None else self.bias_ih + self.bias_hh
        from_input = linear(inputs, self.weight_ih, bias)
        return run_kernel(GatedKernel(MatrixProduct(), LSTMUpdate()), from_input, first, self.weight_hh)

    def outputs(self, inputs: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run the cell with torch's own LSTM, which keeps c for the last step only."""
        if self.linearised:
            return super().outputs(inputs, state)
        d, first = self.hidden_size, self.checked_initial_state(inputs, state)

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
            for from_input in linear(x, weight_ih, bias_ih):
                cell, hidden = self.elementwise(from_input, linear(hidden, weight_hh, bias_hh), cell)
                hidden = hidden if weight_hr is None else linear(hidden, weight_hr)
                outputs.append(hidden)
            return torch.stack(outputs), torch.cat((cell, hidden), dim=-1)

        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, self.weight_hr)
        hidden, last = run_fused(fast, plain, inputs, first, *weights)
        return hidden, last
