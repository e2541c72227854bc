r"""MVMA cells: expansions at zero, trained as cells of their own.

The state is the sum of matrix-vector products A(x_t) … A(x_{i+1}) g(x_i): "matrix-vector multiplicative additive".

Source:
    Implicit n-grams, table 2, section 5 and appendix F.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.cells.affine import AffineCell, AffineMap
from unrolled.cells.capabilities import FirstOrderCell, repeated_diagonals, repeated_terms
from unrolled.linalg.activations import SIGMOID, TANH, Activation
from unrolled.linalg.structured import Term

__all__ = ["MVMAE", "MVMAG", "MVMAL", "MVMAME"]


class MVMAE(AffineCell, FirstOrderCell):
    r"""MVMA-E: the Elman network's expansion at zero, with its parameters.

    .. math:: g = \tanh(W x + b), \qquad A = \mathrm{diag}(1 - g²)\, U, where b holds both biases.
    """

    name = "mvma_e"
    products = (1, 1)
    used = (0,)
    recurrent_terms = (Term("hidden", "slope"),)

    activation: Activation = TANH

    def affine_map(self, from_input: Tensor) -> AffineMap:
        """Compute g and the diagonal of U."""
        x = self.with_both_biases(from_input)
        g = self.activation(x)
        return AffineMap((g,), {"slope": self.activation.slope(x, g)})


class MVMAME(AffineCell, FirstOrderCell):
    r"""MVMA-ME: the tokens scale the rows of one matrix M.

    .. math:: g = \tanh(W' x + b'), \qquad A = \tfrac14 \mathrm{diag}(\tanh(W x + b)) M + \tfrac12 I

    Both products of the input are rows of one matrix, first W, then W'. The paper drops the biases. M has none.

    Source:
        Implicit n-grams, section 5, "Baselines".
    """

    name = "mvma_me"
    products = (2, 1)
    used = (0,)
    carry = (Term("hidden", "keep"),)
    recurrent_terms = (Term("hidden", "scale"),)

    activation: Activation = TANH

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, proj_size: int = 0) -> None:
        super().__init__(input_size, hidden_size, False, proj_size)
        if bias:
            self.bias_ih = nn.Parameter(torch.empty(2 * hidden_size))
            self.reset_parameters()

    def affine_map(self, from_input: Tensor) -> AffineMap:
        """Compute g and the diagonals of I and M."""
        scale, offset = self.activation(from_input).chunk(2, dim=-1)
        return AffineMap((offset,), {"keep": scale.new_full((), 0.5).expand_as(scale), "scale": 0.25 * scale})


class MVMAG(AffineCell, FirstOrderCell):
    r"""MVMA-G: the GRU's expansion at zero, with its parameters.

    With r, z and n as the GRU has them at h = 0, so that n = tanh(W_n x + b_in + r ⊙ b_hn),

    .. math::
        g = (1 - z) ⊙ n, \qquad A = \mathrm{diag}(z) - \mathrm{diag}(n z(1-z)) U_z
        + \mathrm{diag}((1-z)(1-n²) r) U_n + \mathrm{diag}((1-z)(1-n²) b_{hn} r(1-r)) U_r

    The paper drops the biases, and with them the last term: the diagonal of U_r is then zero.
    """

    name = "mvma_g"
    products = (3, 3)
    used = (0, 1, 2)  # U_r, U_z, U_n
    carry = (Term("hidden", "keep"),)
    recurrent_terms = (Term("hidden", "reset", 0), Term("hidden", "update", 1), Term("hidden", "candidate", 2))

    gate: Activation = SIGMOID
    candidate: Activation = TANH

    def affine_map(self, from_input: Tensor) -> AffineMap:
        """Compute g and the diagonals of I, U_r, U_z and U_n."""
        d = self.hidden_size
        gates, a = from_input.split((2 * d, d), dim=-1)
        m = from_input.new_zeros(d)
        if self.bias_hh is not None:
            bias, m = self.bias_hh.split((2 * d, d))
            gates = gates + bias
        opened = self.gate(gates)
        r, z = opened.chunk(2, dim=-1)
        dr, dz = self.gate.slope(gates, opened).chunk(2, dim=-1)
        a = a + r * m
        n = self.candidate(a)
        dn = (1 - z) * self.candidate.slope(a, n)
        return AffineMap(((1 - z) * n,), {"keep": z, "reset": dn * m * dr, "update": -n * dz, "candidate": dn * r})


class MVMAL(AffineCell, FirstOrderCell):
    r"""MVMA-L: the LSTM's expansion at zero over [c; h], with its parameters.

    With i, f, g and o as the LSTM has them at h = 0, and q = o (1 - tanh²(i g)),

    .. math::
        g_c = i ⊙ g,\; B = \mathrm{diag}(f),\; D = \mathrm{diag}(g i(1-i)) U_i + \mathrm{diag}(i(1-g²)) U_g

    .. math::
        g_h = o ⊙ \tanh(i ⊙ g),\; E = \mathrm{diag}(q) B,\;
        F = \mathrm{diag}(q) D + \mathrm{diag}(\tanh(i g)\, o(1-o)) U_o

    U_f appears in no term, because c = 0; it is kept so that an LSTM's weights fit.
    """

    name = "mvma_l"
    products = (4, 4)
    used = (0, 2, 3)  # U_i, U_g, U_o
    parts = ("cell", "hidden")
    carry = repeated_terms(Term("cell", "keep"))
    recurrent_terms = (
        *repeated_terms(Term("cell", "input", 0), Term("cell", "candidate", 1)),
        Term("hidden", "output", 2),
    )

    gate: Activation = SIGMOID
    candidate: Activation = TANH
    squash: Activation = TANH

    def affine_map(self, from_input: Tensor) -> AffineMap:
        """Compute g and the diagonals of c, U_i and U_g for c', the same for h', and that of U_o."""
        xi, xf, xg, xo = self.with_both_biases(from_input).chunk(4, dim=-1)
        i, f, g, o = self.gate(xi), self.gate(xf), self.candidate(xg), self.gate(xo)
        offset = i * g
        squashed = self.squash(offset)
        q = o * self.squash.slope(offset, squashed)
        row = {"keep": f, "input": g * self.gate.slope(xi, i), "candidate": i * self.candidate.slope(xg, g)}
        by_output = squashed * self.gate.slope(xo, o)
        return AffineMap((offset, o * squashed), repeated_diagonals(row, q) | {"output": by_output})
