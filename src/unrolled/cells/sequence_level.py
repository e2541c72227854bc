r"""The cells of "sequence-level features": first-order expansions of a GRU and an LSTM, trained as cells of their own.

With σ(x) ≈ 1/2 + x/4 and tanh(x) ≈ x, and no power of the state above the first, g and A are polynomials in the token.
In all formulas x^a = W_a x with both biases of gate a; the paper's x^c is x^g here. Where a matrix appears in no term
its weights are kept, so that the weights of a GRU or LSTM fit.

Source:
    Sequence-level features, eq. 11, 16, 21 and 22, section 5.2 and appendix A.4.
"""

from __future__ import annotations

from typing import SupportsFloat

import torch
from torch import Tensor

from unrolled.cells.affine import AffineCell, AffineMap
from unrolled.cells.capabilities import FirstOrderCell, MeanSlopesCell, Point, repeated_diagonals, repeated_terms
from unrolled.errors import UsageError
from unrolled.kernels.affine_scan import Pattern
from unrolled.linalg.activations import Activation, mean_slope
from unrolled.linalg.quadrature import Named, gauss_legendre
from unrolled.linalg.structured import Term

__all__ = ["ApproxGRU", "ApproxLSTM", "GRUVariant", "LSTMVariant", "PolynomialCell", "SimplifiedGRU", "SimplifiedLSTM"]

# f is of degree 3 along the ray, its slopes of degree 2: two Gauss nodes average them exactly.
_EXACT_NODES = 2


class PolynomialCell(AffineCell, FirstOrderCell, MeanSlopesCell):
    """An affine cell made of sums and products alone, of degree 3 at most in the token and the state together.

    Without an activation nothing bounds the state, so the paper cuts every entry off at ±1.5 on its largest corpus. The
    mean slope of a cut-off is the quotient (clamp(b) - clamp(a)) / (b - a), which is exact across the kink.

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: Number of units d.
        bias: Whether b and b' exist.
        proj_size: Must be 0: an affine cell has no projection.
        clamp: The bound at which every entry of a new state is cut off; None for no bound. The cell is affine only
            where no entry reaches the bound.

    Raises:
        UsageError: If ``clamp`` is not positive.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        proj_size: int = 0,
        clamp: float | None = None,
    ) -> None:
        if clamp is not None and not (isinstance(clamp, SupportsFloat) and clamp > 0):
            raise UsageError(f"clamp is {clamp!r}; expected a positive bound, such as 1.5, or None")
        super().__init__(input_size, hidden_size, bias, proj_size)
        self.pattern = Pattern(self.parts, self.carry, self.recurrent_terms, self.hidden_size, clamp)

    @property
    def cut_off(self) -> Activation:
        """The cut-off as an activation."""
        bound = torch.inf if self.pattern.clamp is None else self.pattern.clamp
        return Activation("clamp", lambda x: x.clamp(-bound, bound), lambda x, _: (x.abs() <= bound).to(x.dtype), None)

    def slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Compute the diagonals of A and of the input; zero where a part is cut off."""
        slopes = super().slopes(from_input, from_hidden, carried)
        if self.pattern.clamp is None:
            return slopes
        parts = self.unconfined(from_input, from_hidden, carried)
        return self._scaled(slopes, tuple(self.cut_off.slope(part, part) for part in parts))

    def mean_slopes(self, origin: Point, end: Point) -> Named:
        """Average the diagonals exactly, also where the token moves and where the state is cut off."""
        rule = gauss_legendre(_EXACT_NODES)
        slopes = rule(lambda alpha: super(PolynomialCell, self).slopes(*origin.towards(end, alpha)))
        if self.pattern.clamp is None:
            return slopes
        ends = zip(self.unconfined(*origin), self.unconfined(*end), strict=True)
        return self._scaled(slopes, tuple(mean_slope(self.cut_off, a, b) for a, b in ends))

    def _scaled(self, slopes: Named, factors: tuple[Tensor, ...]) -> Named:
        """Multiply the slopes of each part of the state by that part's factor."""
        factor = dict(zip(self.parts, factors, strict=True))
        part = {term.diagonal: term.part for term in (*self.carry, *self.recurrent_terms, *self.input_terms)}
        return {name: slope * factor[part[name]] for name, slope in slopes.items()}


class ApproxGRU(PolynomialCell):
    r"""The GRU's activation expansion, run as a recurrence.

    .. math::
        g = \tfrac12 x^n - \tfrac14 x^n ⊙ x^z, \qquad
        A = \tfrac12 I + \tfrac14 U_n + \tfrac14 \mathrm{diag}(x^z) - \tfrac14 \mathrm{diag}(x^n) U_z
        + \tfrac18 \mathrm{diag}(x^r - x^z - \tfrac12 x^z ⊙ x^r) U_n

    Source:
        Eq. 11, "Approx".
    """

    name = "approx_gru"
    products = (3, 3)
    used = (1, 2)  # U_z, U_n
    carry = (Term("hidden", "keep"),)
    recurrent_terms = (Term("hidden", "update", 0), Term("hidden", "candidate", 1))

    def affine_map(self, from_input: Tensor) -> AffineMap:
        """Compute g and the diagonals of I, U_z and U_n."""
        r, z, n = self.with_both_biases(from_input).chunk(3, dim=-1)
        kept, passed = 0.5 + 0.25 * z, 0.5 + 0.25 * r
        return AffineMap(((1 - kept) * n,), {"keep": kept, "update": -0.25 * n, "candidate": (1 - kept) * passed})


class SimplifiedGRU(PolynomialCell):
    r"""The approximate GRU with the same A for all tokens: the baseline without sequence-level features.

    .. math:: g = \tfrac12 x^n - \tfrac14 x^n ⊙ x^z, \qquad A = \tfrac12 I + \tfrac14 U_n

    Source:
        Section 5.2, "Simplified".
    """

    name = "simplified_gru"
    products = (3, 3)
    used = (2,)  # U_n
    carry = (Term("hidden", "keep"),)
    recurrent_terms = (Term("hidden", "candidate"),)

    def affine_map(self, from_input: Tensor) -> AffineMap:
        """Compute g and the diagonals of I and U_n."""
        _, z, n = self.with_both_biases(from_input).chunk(3, dim=-1)
        half, quarter = (n.new_full((), value).expand_as(n) for value in (0.5, 0.25))
        return AffineMap(((0.5 - 0.25 * z) * n,), {"keep": half, "candidate": quarter})


class GRUVariant(PolynomialCell):
    r"""The GRU variant: the approximate GRU's g, with a transition that the authors designed.

    .. math::
        g = \tfrac12 x^n - \tfrac14 x^n ⊙ x^z, \qquad
        A = \tfrac14 U_n + \tfrac7{10} I - \tfrac14 \mathrm{diag}(x^n) U_z + \tfrac14 \mathrm{diag}(x^z) U_r
        + \tfrac18 \mathrm{diag}(x^r - x^z - x^r ⊙ x^z) U_n

    Source:
        Eq. 21.
    """

    name = "gru_variant"
    products = (3, 3)
    used = (0, 1, 2)  # U_r, U_z, U_n
    carry = (Term("hidden", "keep"),)
    recurrent_terms = (Term("hidden", "reset", 0), Term("hidden", "update", 1), Term("hidden", "candidate", 2))

    def affine_map(self, from_input: Tensor) -> AffineMap:
        """Compute g and the diagonals of I, U_r, U_z and U_n."""
        r, z, n = self.with_both_biases(from_input).chunk(3, dim=-1)
        diagonals = {
            "keep": n.new_full((), 0.7).expand_as(n),
            "reset": 0.25 * z,
            "update": -0.25 * n,
            "candidate": 0.25 + 0.125 * (r - z - r * z),
        }
        return AffineMap(((0.5 - 0.25 * z) * n,), diagonals)


class ApproxLSTM(PolynomialCell):
    r"""The LSTM's activation expansion, run as a recurrence over [c; h].

    .. math::
        g_c = \tfrac14 (x^i + 2) ⊙ x^g,\; B = \tfrac14 \mathrm{diag}(x^f + 2),\;
        D = \tfrac14 \mathrm{diag}(x^i + 2) U_g + \tfrac14 \mathrm{diag}(x^g) U_i

    .. math::
        g_h = \tfrac14 (x^o + 2) ⊙ g_c,\; E = \tfrac14 \mathrm{diag}(x^o + 2) B,\;
        F = \tfrac14 \mathrm{diag}(x^o + 2) D + \tfrac14 \mathrm{diag}(g_c) U_o

    Source:
        Eq. 16, "Approx".
    """

    name = "approx_lstm"
    products = (4, 4)
    used = (0, 2, 3)  # U_i, U_g, U_o
    parts = ("cell", "hidden")
    carry = repeated_terms(Term("cell", "keep"))
    recurrent_terms = (
        *repeated_terms(Term("cell", "input", 0), Term("cell", "candidate", 1)),
        Term("hidden", "output", 2),
    )

    def affine_map(self, from_input: Tensor) -> AffineMap:
        """Compute g and the diagonals of c, U_i and U_g for c', the same for h', and that of U_o."""
        i, f, g, o = self.with_both_biases(from_input).chunk(4, dim=-1)
        entered, kept, shown = 0.5 + 0.25 * i, 0.5 + 0.25 * f, 0.5 + 0.25 * o
        offset = entered * g
        row = {"keep": kept, "input": 0.25 * g, "candidate": entered}
        return AffineMap((offset, shown * offset), repeated_diagonals(row, shown) | {"output": 0.25 * offset})


class SimplifiedLSTM(PolynomialCell):
    r"""The approximate LSTM with the same A for all tokens: the baseline without sequence-level features.

    .. math::
        g_c = \tfrac14 (x^i + 2) ⊙ x^g,\; g_h = \tfrac14 (x^o + 2) ⊙ g_c, \qquad
        B = \tfrac12 I,\; D = \tfrac12 U_g,\; E = \tfrac14 I,\; F = \tfrac14 U_g

    Source:
        Section 5.2, "Simplified".
    """

    name = "simplified_lstm"
    products = (4, 4)
    used = (2,)  # U_g
    parts = ("cell", "hidden")
    carry = repeated_terms(Term("cell", "keep"))
    recurrent_terms = repeated_terms(Term("cell", "candidate"))

    def affine_map(self, from_input: Tensor) -> AffineMap:
        """Compute g and the diagonals of c and U_g for c', and the same for h'."""
        i, _, g, o = self.with_both_biases(from_input).chunk(4, dim=-1)
        offset = (0.5 + 0.25 * i) * g
        half = g.new_full((), 0.5).expand_as(g)
        return AffineMap(
            (offset, (0.5 + 0.25 * o) * offset), repeated_diagonals({"keep": half, "candidate": half}, half)
        )


class LSTMVariant(PolynomialCell):
    r"""The LSTM variant: the approximate LSTM's g, with a transition that the authors designed, over [c; h].

    .. math::
        g_c = \tfrac14 x^i ⊙ x^g + \tfrac12 x^g,\;
        B = \tfrac14 \mathrm{diag}(x^f + 2.4 + 2.4\, x^i + 0.4\, x^g),\;
        D = \tfrac14 \mathrm{diag}(x^i + 2) U_g + \tfrac14 \mathrm{diag}(x^g) U_i + \tfrac1{10} \mathrm{diag}(x^f) U_f

    .. math::
        g_h = \tfrac14 x^o ⊙ g_c + \tfrac12 g_c,\; E = \tfrac14 \mathrm{diag}(x^o) B + \tfrac12 B,\;
        F = \tfrac14 \mathrm{diag}(x^o + 2) D + \tfrac14 \mathrm{diag}(g_c + \tfrac1{10} x^f + \tfrac1{10} x^o) U_o

    In B the paper writes an x^g that it does not define; this cell takes it for the cell gate, as elsewhere.

    Source:
        Eq. 22.
    """

    name = "lstm_variant"
    products = (4, 4)
    used = (0, 1, 2, 3)  # U_i, U_f, U_g, U_o
    parts = ("cell", "hidden")
    carry = repeated_terms(Term("cell", "keep"))
    recurrent_terms = (
        *repeated_terms(Term("cell", "input", 0), Term("cell", "forget", 1), Term("cell", "candidate", 2)),
        Term("hidden", "output", 3),
    )

    def affine_map(self, from_input: Tensor) -> AffineMap:
        """Compute g and the diagonals of c, U_i, U_f and U_g for c', the same for h', and that of U_o."""
        i, f, g, o = self.with_both_biases(from_input).chunk(4, dim=-1)
        entered, shown = 0.5 + 0.25 * i, 0.5 + 0.25 * o
        offset = entered * g
        kept = 0.6 + 0.6 * i + 0.25 * f + 0.1 * g
        row = {"keep": kept, "input": 0.25 * g, "forget": 0.1 * f, "candidate": entered}
        by_output = 0.25 * (offset + 0.1 * f + 0.1 * o)
        return AffineMap((offset, shown * offset), repeated_diagonals(row, shown) | {"output": by_output})
