r"""The gated recurrent unit: PyTorch's form, and the form as first published.

Source:
    Cho et al. (2014), arXiv:1406.1078; Chung et al. (2014), arXiv:1412.3555; Implicit n-grams, table 2.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from unrolled.cells.base import Cell
from unrolled.cells.capabilities import ActivatedCell, FirstOrderCell, GatedCell, Point, ShareSlopesCell
from unrolled.cells.closed_form import ClosedCell
from unrolled.kernels.base import run_kernel
from unrolled.kernels.elementwise import GRUUpdate
from unrolled.kernels.gated import GatedKernel, ResetBeforeKernel
from unrolled.kernels.products import MatrixProduct
from unrolled.linalg.activations import SIGMOID, TANH, Activation, slope_from_zero, slope_of_step, with_share
from unrolled.linalg.quadrature import Named
from unrolled.linalg.structured import Term, block

__all__ = ["GRU", "GRUBefore"]

R, Z, N = range(3)  # the products, in PyTorch's order


class GRU(ActivatedCell, ClosedCell, GatedCell, FirstOrderCell, ShareSlopesCell):
    r"""The GRU in PyTorch's form: the reset gate after the product.

    .. math::
        r = σ(W_r x + U_r h + b_r),\; z = σ(W_z x + U_z h + b_z),\;
        n = \tanh(W_n x + b_{in} + r ⊙ (U_n h + b_{hn})),\; h' = (1 - z) ⊙ n + z ⊙ h

    with the Jacobian, m = U_n h + b_hn,

    .. math::
        ∂h'/∂h = \mathrm{diag}(z) + \mathrm{diag}((h - n) z(1-z)) U_z + \mathrm{diag}((1-z)(1-n²) r) U_n
        + \mathrm{diag}((1-z)(1-n²) m\, r(1-r)) U_r

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: Number of units d.
        bias: Whether the biases exist.
        proj_size: Must be 0: the cell has no projection.
    """

    name = "gru"
    torch_type = nn.GRU
    products = (3, 3)
    carry = (Term("hidden", "keep"),)
    recurrent_terms = (Term("hidden", "reset", R), Term("hidden", "update", Z), Term("hidden", "candidate", N))
    # the reset gate multiplies U_n h only, so W_n x has a diagonal of its own
    input_terms = (Term("hidden", "reset", R), Term("hidden", "update", Z), Term("hidden", "candidate_input", N))

    gate: Activation = SIGMOID
    candidate: Activation = TANH

    def activations(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Compute r, z and n."""
        (xr, xz, xn), (hr, hz, m) = from_input.chunk(3, dim=-1), from_hidden.chunk(3, dim=-1)
        # one sum a gate: what is made of it is contiguous, and an activation of that takes half the time
        r, z = self.gate(xr + hr), self.gate(xz + hz)
        return {"r": r, "z": z, "n": self.candidate(torch.addcmul(xn, r, m))}

    def parts_of(self, values: Named, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute (1 - z) ⊙ n + z ⊙ h."""
        n = values["n"]
        return (n + values["z"] * (carried - n),)

    def slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Compute the diagonals of I, U_r, U_z, U_n and W_n."""
        two = 2 * self.hidden_size
        pre = from_input[..., :two] + from_hidden[..., :two]
        gates = self.gate(pre)
        steepness = self.gate.slope(pre, gates)
        r, z = gates.chunk(2, dim=-1)
        dr, dz = steepness.chunk(2, dim=-1)
        m = from_hidden[..., two:]
        a = from_input[..., two:] + r * m
        n = self.candidate(a)
        dn = (1 - z) * self.candidate.slope(a, n)
        return {
            "keep": z,
            "reset": dn * m * dr,
            "update": (carried - n) * dz,
            "candidate": dn * r,
            "candidate_input": dn,
        }

    def secant_slopes(self, origin: Point, end: Point) -> Named:
        r"""Compute the same diagonals for the secant from ``origin``, where the state is empty, to ``end``.

        .. math::
            Δh' = (1 - \tfrac12 (z_0 + z)) S_n ⊙ Δa_n + \tfrac12 S_z (h - n_0 - n) ⊙ U_z h + \tfrac12 (z_0 + z) ⊙ h,
            \quad Δa_n = \tfrac12 (r_0 + r) ⊙ U_n h + \tfrac12 S_r (m_0 + m) ⊙ U_r h
        """
        (r0, z0, n0), (r, z, n) = (self.values_at(point).values() for point in (origin, end))
        step_r, step_z = (origin.pre_activation_step(end, k, self.hidden_size) for k in (R, Z))
        m0, m = (block(point.from_hidden, N, self.hidden_size) for point in (origin, end))
        step_n = (r * m).addcmul_(r0, m0, value=-1)
        if end.from_input is not origin.from_input:
            x0, x = (block(point.from_input, N, self.hidden_size) for point in (origin, end))
            step_n.add_(x).sub_(x0)
        keep = torch.lerp(z0, z, 0.5)
        by_candidate = (1 - keep).mul_(slope_of_step(self.candidate, step_n, n0, n))
        half = 0.5 * by_candidate
        return {
            "keep": keep,
            "reset": (m0 + m).mul_(slope_of_step(self.gate, step_r, r0, r)).mul_(half),
            "update": (end.carried - n0).sub_(n).mul_(slope_of_step(self.gate, step_z, z0, z)).mul_(0.5),
            "candidate": (r0 + r).mul_(half),
            "candidate_input": by_candidate,
        }

    def alone_slopes(self, end: Point, share: float) -> Named:
        """Compute the same diagonals but for "keep", for lines from zero, gates being ½ without value.

        The step is h' = n + z ⊙ (h - n).
        """
        d, (r, z, n) = self.hidden_size, self.values_at(end).values()
        m = block(end.from_hidden, N, d)
        a = torch.addcmul(block(end.from_input, N, d), r, m)
        by_candidate = (1 - with_share(self.gate, z, share)).mul_(slope_from_zero(self.candidate, a, n))
        return {
            "reset": slope_from_zero(self.gate, end.pre_activation(R, d), r).mul_(m).mul_(by_candidate).mul_(1 - share),
            "update": slope_from_zero(self.gate, end.pre_activation(Z, d), z).mul_(end.carried - n).mul_(1 - share),
            "candidate": by_candidate * with_share(self.gate, r, share),
            "candidate_input": by_candidate,
        }

    def share_slopes(self, end: Point, share: float) -> Named:
        """Compute the same diagonals for lines from zero."""
        return {"keep": with_share(self.gate, self.values_at(end)["z"], share), **self.alone_slopes(end, share)}

    def fixed_gate_slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Keep z: h' = z ⊙ h + (1 - z) ⊙ n."""
        update = slice(self.hidden_size, 2 * self.hidden_size)
        return {"keep": self.gate(from_input[..., update] + from_hidden[..., update])}

    def first_order(self) -> GRU:
        """Linearise the activations; as in the paper, x^n holds both biases of the candidate.

        Source:
            Sequence-level features, eq. 10.
        """
        weights: dict[str, Tensor | None] = {**dict(self.named_parameters())}
        if self.bias_ih is not None and self.bias_hh is not None:
            two = 2 * self.hidden_size
            none = torch.zeros_like(self.bias_hh[two:])
            weights["bias_ih"] = self.bias_ih + torch.cat((none, none, self.bias_hh[two:]))
            weights["bias_hh"] = torch.cat((self.bias_hh[:two], none))
        surrogate = GRU.from_weights(weights)
        surrogate.gate, surrogate.candidate = self.gate.first_order(), self.candidate.first_order()
        return surrogate

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence with a kernel."""
        if (self.gate, self.candidate) != (SIGMOID, TANH):  # linearised
            return super().unroll(inputs, state)
        first, bias, of_candidate = self.checked_initial_state(inputs, state), None, None
        if self.bias_ih is not None and self.bias_hh is not None:
            d = self.hidden_size
            of_gates, of_candidate = self.bias_hh.split((2 * d, d))
            bias = self.bias_ih + pad(of_gates, (0, d))
        kernel = GatedKernel(MatrixProduct(), GRUUpdate())
        return run_kernel(kernel, linear(inputs, self.weight_ih, bias), first, of_candidate, self.weight_hh)


class GRUBefore(Cell):
    r"""The GRU as first published: the reset gate before the product.

    .. math::
        r = σ(W_r x + U_r h + b_r),\; z = σ(W_z x + U_z h + b_z),\;
        n = \tanh(W_n x + U_n (r ⊙ h) + b_n),\; h' = (1 - z) ⊙ h + z ⊙ n

    Here z is the share that is replaced, as in the lecture; in torch.nn.GRU, and in Cho et al., it is the share that
    is kept. The gates have the order r, z, n.

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: Number of units d.
        bias: Whether b exists.

    Source:
        Cho et al. (2014), arXiv:1406.1078; CS577, lecture 5, for the meaning of z.
    """

    name = "gru_before"

    bias: nn.Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(input_size, hidden_size)
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden_size, hidden_size))
        self.register_parameter("bias", nn.Parameter(torch.empty(3 * hidden_size)) if bias else None)
        self.reset_parameters()

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute (1 - z) ⊙ h + z ⊙ n."""
        two = 2 * self.hidden_size
        from_input = linear(inputs, self.weight_ih, self.bias)
        gates = torch.sigmoid(from_input[..., :two] + linear(state, self.weight_hh[:two]))
        reset, update = gates.chunk(2, dim=-1)
        candidate = torch.tanh(from_input[..., two:] + linear(reset * state, self.weight_hh[two:]))
        return state + update * (candidate - state)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence with a kernel."""
        first, from_input = self.checked_initial_state(inputs, state), linear(inputs, self.weight_ih, self.bias)
        return run_kernel(ResetBeforeKernel(), from_input, first, self.weight_hh)
