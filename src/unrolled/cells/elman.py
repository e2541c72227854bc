r"""The Elman network.

.. math:: h_t = φ(W x_t + b + U h_{t-1} + b')

Source:
    Elman (1990), Finding structure in time; Implicit n-grams, table 2.
"""

from __future__ import annotations

from typing import Self

from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.capabilities import FirstOrderCell, GatedCell, MeanSlopesCell, Point, ShareSlopesCell
from unrolled.cells.closed_form import ClosedCell
from unrolled.errors import UnknownNameError
from unrolled.kernels.base import run_kernel
from unrolled.kernels.elementwise import ActivationUpdate
from unrolled.kernels.gated import GatedKernel
from unrolled.kernels.products import MatrixProduct
from unrolled.linalg.activations import RELU, SIGMOID, TANH, Activation, mean_slope, slope_from_zero
from unrolled.linalg.quadrature import Named
from unrolled.linalg.structured import Term

__all__ = ["Elman"]

_ACTIVATIONS = {"tanh": TANH, "relu": RELU, "sigmoid": SIGMOID}


class Elman(ClosedCell, GatedCell, FirstOrderCell, MeanSlopesCell, ShareSlopesCell):
    """One activation φ of one affine map.

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: Number of units d.
        bias: Whether b and b' exist.
        proj_size: Must be 0: the cell has no projection.
        nonlinearity: φ: ``"tanh"``, ``"relu"`` or ``"sigmoid"``.

    Raises:
        UnknownNameError: If ``nonlinearity`` is none of these.
    """

    name = "elman"
    torch_type = nn.RNN
    products = (1, 1)
    input_terms = recurrent_terms = (Term("hidden", "slope"),)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        proj_size: int = 0,
        nonlinearity: str = "tanh",
    ) -> None:
        super().__init__(input_size, hidden_size, bias, proj_size)
        if nonlinearity not in _ACTIVATIONS:
            raise UnknownNameError("non-linearity", nonlinearity, _ACTIVATIONS)
        self.activation: Activation = _ACTIVATIONS[nonlinearity]

    def initialise_identity(self) -> None:
        """Set U to the identity and both biases to zero: with relu, an input of zero leaves the state as it is.

        Source:
            Le et al. (2015), arXiv:1504.00941.
        """
        nn.init.eye_(self.weight_hh)
        for bias in (self.bias_ih, self.bias_hh):
            if bias is not None:
                nn.init.zeros_(bias)

    def copy_options(self, rnn: nn.RNNBase) -> Self:
        """Copy the non-linearity of a torch.nn.RNN."""
        self.activation = _ACTIVATIONS[str(rnn.nonlinearity)]
        return self

    def elementwise(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute φ(z^x + z^h)."""
        return (self.activation(from_input + from_hidden),)

    def slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Compute φ'(z^x + z^h)."""
        z = from_input + from_hidden
        return {"slope": self.activation.slope(z, self.activation(z))}

    def mean_slopes(self, origin: Point, end: Point) -> Named:
        """Compute the mean of φ' as a quotient, which is exact even across the kink of relu."""
        first, last = (point.from_input + point.from_hidden for point in (origin, end))
        return {"slope": mean_slope(self.activation, first, last)}

    def secant_slopes(self, origin: Point, end: Point) -> Named:
        """Compute the same: an activation of a sum has the mean slope as its secant."""
        return self.mean_slopes(origin, end)

    def alone_slopes(self, end: Point, share: float) -> Named:
        """Compute (φ(z) - φ(0))/z; no product is shared."""
        z = end.from_input + end.from_hidden
        return {"slope": slope_from_zero(self.activation, z, self.activation(z))}

    def share_slopes(self, end: Point, share: float) -> Named:
        """Compute the same: nothing is carried."""
        return self.alone_slopes(end, share)

    def fixed_gate_slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Return the ratio (φ(z) - φ(0))/z: the cell has no gate, and this gain replaces one."""
        z = from_input + from_hidden
        return {"slope": mean_slope(self.activation, z.new_zeros(()), z)}

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence with a kernel."""
        if self.activation not in _ACTIVATIONS.values():  # linearised
            return super().unroll(inputs, state)
        first = self.checked_initial_state(inputs, state)
        bias = None if self.bias_ih is None or self.bias_hh is None else self.bias_ih + self.bias_hh
        kernel = GatedKernel(MatrixProduct(), ActivationUpdate(self.activation))
        return run_kernel(kernel, linear(inputs, self.weight_ih, bias), first, self.weight_hh)
