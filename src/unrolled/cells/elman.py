r"""The Elman network.

.. math:: h_t = φ(W x_t + b + U h_{t-1} + b')

Source:
    Elman (1990), Finding structure in time; Implicit n-grams, table 2.
"""

from __future__ import annotations

from typing import Self

from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.closed_form import ClosedCell
from unrolled.cells.closed_form_ray import ClosedRay, ClosedRun
from unrolled.errors import UnknownNameError
from unrolled.kernels.base import run_kernel
from unrolled.kernels.elementwise import ActivationUpdate
from unrolled.kernels.gated import GatedKernel
from unrolled.kernels.products import MatrixProduct
from unrolled.linalg.activations import RELU, SIGMOID, TANH, Activation, mean_slope
from unrolled.linalg.operators import Structured, Term

__all__ = ["Elman"]

ACTIVATIONS = {"tanh": TANH, "relu": RELU, "sigmoid": SIGMOID}


class Elman(ClosedCell):
    """One activation of one affine map.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: the length of a projected output, 0 for none.
        nonlinearity: ``"tanh"``, ``"relu"`` or ``"sigmoid"``.

    Raises:
        UnknownNameError: when the non-linearity is none of them.
    """

    name = "elman"
    torch_type = nn.RNN
    products = (1, 1)
    carry = (None,)
    input_terms = (Term(0, 0, 0),)
    recurrent_terms = (Term(0, 0, 0),)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        proj_size: int = 0,
        nonlinearity: str = "tanh",
    ) -> None:
        super().__init__(input_size, hidden_size, bias, proj_size)
        if nonlinearity not in ACTIVATIONS:
            raise UnknownNameError("non-linearity", nonlinearity, ACTIVATIONS)
        self.activation: Activation = ACTIVATIONS[nonlinearity]

    def initialise_identity(self) -> None:
        """Set U to the identity and both biases to zero: with a relu, a state stays until an input moves it.

        Source:
            Le et al. (2015), arXiv:1504.00941.
        """
        nn.init.eye_(self.weight_hh)
        for bias in (self.bias_ih, self.bias_hh):
            if bias is not None:
                nn.init.zeros_(bias)

    def adopt(self, rnn: nn.RNNBase) -> Self:
        """Take over what a torch.nn.RNN keeps beside its weights.

        Args:
            rnn: the module this cell is a layer of.

        Returns:
            The cell itself.
        """
        self.activation = ACTIVATIONS[str(rnn.nonlinearity)]
        return self

    def combine(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute φ(z^x + z^h)."""
        return (self.activation(by_input + by_hidden),)

    def slopes(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute φ'(z^x + z^h)."""
        z = by_input + by_hidden
        return (self.activation.slope(z, self.activation(z)),)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence: the products of all inputs are one, and the loop is a kernel."""
        if self.activation not in ACTIVATIONS.values():  # linearised
            return super().unroll(inputs, state)
        first = self.checked_start(inputs, state)
        bias = None if self.bias_ih is None or self.bias_hh is None else self.bias_ih + self.bias_hh
        kernel = GatedKernel(MatrixProduct(), ActivationUpdate(self.activation))
        return run_kernel(kernel, linear(inputs, self.weight_ih, bias), first, self.weight_hh)

    def gates(self, ray: ClosedRay) -> Structured:
        """Keep the ratio (φ(z) - φ(0))/z that the activation took: there is no gate, but a gain."""
        x, h, _ = ray.point(1.0)
        z = x + h
        return ray.structured((mean_slope(self.activation, z.new_zeros(()), z),))

    def first_order(self) -> Elman:
        """Replace φ by φ(0) + φ'(0)·x."""
        surrogate = Elman.from_weights(dict(self.named_parameters()))
        surrogate.activation = self.activation.first_order()
        return surrogate

    def draw(self, trace: ClosedRun, origin: Tensor) -> ElmanRay:
        """Draw the ray, whose mean slope is known."""
        return ElmanRay(trace, origin)


class ElmanRay(ClosedRay):
    """A ray along which the mean slope is a quotient: exact even across the kink of a relu."""

    cell: Elman

    def mean_jacobian(self) -> Structured:
        """Average φ' in closed form."""
        (x0, h0, _), (x1, h1, _) = self.point(0.0), self.point(1.0)
        return self.structured((mean_slope(self.cell.activation, x0 + h0, x1 + h1),))
