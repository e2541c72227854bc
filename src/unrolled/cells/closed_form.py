r"""Cells whose Jacobian has a closed form: an element-wise function of shared linear products.

    z^x = W x + b,   z^h = U h + b',   s_t = φ(z^x, z^h, carried),   all of φ element-wise

so that ∂s_t/∂s_{t-1} = diag(a) + Σ_k diag(b_k) U_k with a and b_k the partial derivatives of φ. A member of this
family states φ and its slopes; the products, the loop, the ray and the operator are written once, here.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unrolled.cells.base import Cell
from unrolled.cells.closed_form_ray import ClosedRay, ClosedRun
from unrolled.errors import ShapeError, UsageError
from unrolled.linalg.operators import Structured, Term
from unrolled.sizes import checked_size

__all__ = ["ClosedCell"]


class ClosedCell(Cell):
    """A cell with shared weights and an element-wise rest.

    Args:
        input_size: e.
        hidden_size: d, the number of units.
        bias: whether b and b' exist.
        proj_size: the length of the projected hidden output, 0 for none.

    Raises:
        UsageError: when a size is not a positive integer, or the projection is not shorter than what it projects.
    """

    torch_type: ClassVar[type[nn.RNNBase] | None] = None
    """The module of torch.nn that this cell is, if it is one."""
    products: ClassVar[tuple[int, int]]
    """How many products there are of the input and of the hidden state: rows of W and of U, in units of d."""
    carry: ClassVar[tuple[int | None, ...]]
    """For each part of the state, the slope (by its place in :meth:`slopes`) that multiplies the carried part."""
    input_terms: ClassVar[tuple[Term, ...]]
    """The summands diag(b) W_k."""
    recurrent_terms: ClassVar[tuple[Term, ...]]
    """The summands diag(b) U_k."""

    weight_hr: nn.Parameter | None
    bias_ih: nn.Parameter | None
    bias_hh: nn.Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, proj_size: int = 0) -> None:
        parts, hidden_size = len(self.carry), checked_size("hidden_size", hidden_size)
        if proj_size and parts == 1:
            raise UsageError(f"proj_size is {proj_size}; expected 0: a {self.name} cell carries its output itself")
        proj_size = checked_size("proj_size", proj_size, least=0)
        if proj_size >= hidden_size:
            raise UsageError(f"proj_size is {proj_size}; expected 0, or less than hidden_size, {hidden_size}")
        output = proj_size or hidden_size
        super().__init__(input_size, hidden_size, state_size=(parts - 1) * hidden_size + output, output_size=output)
        by_input, by_hidden = self.products
        self.weight_ih = nn.Parameter(torch.empty(by_input * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(by_hidden * hidden_size, output))
        self.register_parameter("weight_hr", nn.Parameter(torch.empty(proj_size, hidden_size)) if proj_size else None)
        self.register_parameter("bias_ih", nn.Parameter(torch.empty(by_input * hidden_size)) if bias else None)
        self.register_parameter("bias_hh", nn.Parameter(torch.empty(by_hidden * hidden_size)) if bias else None)
        self.reset_parameters()

    @classmethod
    def from_weights(cls, weights: dict[str, Tensor | None]) -> Self:
        """Build a cell around existing weights, without a copy.

        Args:
            weights: ``weight_ih``, ``weight_hh`` and, where they exist, ``bias_ih``, ``bias_hh``, ``weight_hr``, in
                PyTorch's layout.

        Returns:
            The cell; its parameters share the given storage and ask for no gradient.

        Raises:
            ShapeError: when the weights are not those of one cell of this kind.
        """
        weight_ih, weight_hh = weights["weight_ih"], weights["weight_hh"]
        if weight_ih is None or weight_hh is None:
            raise ShapeError(f"no weight_ih or weight_hh; expected both for a {cls.name} cell")
        projection = weights.get("weight_hr")
        with torch.device("meta"):
            cell = cls(
                weight_ih.shape[1],
                weight_ih.shape[0] // cls.products[0],
                bias=weights.get("bias_ih") is not None,
                proj_size=0 if projection is None else projection.shape[0],
            )
        for name, empty in list(cell.named_parameters()):
            given = weights[name]
            if given is None or given.shape != empty.shape:
                came = None if given is None else tuple(given.shape)
                raise ShapeError(f"{name} of a {cls.name} cell has shape {came}; expected {tuple(empty.shape)}")
            setattr(cell, name, nn.Parameter(given.detach(), requires_grad=False))
        return cell

    @classmethod
    def from_torch(cls, rnn: nn.RNNBase, layer: int, reverse: bool, dtype: torch.dtype) -> Self:
        """Take one layer and direction out of a module of torch.nn.

        Args:
            rnn: the module.
            layer: which layer, from 0.
            reverse: whether the backward direction.
            dtype: what to compute in; weights already in it are shared, not copied.

        Returns:
            The cell.
        """
        suffix = f"_l{layer}" + ("_reverse" if reverse else "")
        kinds = ["weight_ih", "weight_hh"]
        kinds += ["bias_ih", "bias_hh"] if rnn.bias else []
        kinds += ["weight_hr"] if rnn.proj_size else []
        return cls.from_weights({kind: getattr(rnn, kind + suffix).to(dtype) for kind in kinds}).adopt(rnn)

    def adopt(self, rnn: nn.RNNBase) -> Self:
        """Take over what a torch.nn module keeps beside its weights; nothing, for most.

        Args:
            rnn: the module this cell is a layer of.

        Returns:
            The cell itself.
        """
        return self

    @abstractmethod
    def combine(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute φ: the parts of the new state, before any projection.

        Args:
            by_input: z^x, shape (…, K'·d).
            by_hidden: z^h, shape (…, K·d).
            carried: the first part of the state, shape (…, d).

        Returns:
            The parts, each (…, d).
        """

    @abstractmethod
    def slopes(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute the partial derivatives of φ, in the order that ``carry`` and the terms number them.

        Args:
            by_input: z^x, shape (…, K'·d).
            by_hidden: z^h, shape (…, K·d).
            carried: the first part of the state, shape (…, d).

        Returns:
            The slopes, each (…, d).
        """

    @abstractmethod
    def gates(self, ray: ClosedRay) -> Structured:
        """Give the operator in which the gates keep the values they took.

        Args:
            ray: the line the network was on.

        Returns:
            The operators of all steps.
        """

    @abstractmethod
    def first_order(self) -> ClosedCell:
        """Give the surrogate: this cell with its activations replaced by their first-order expansions at zero.

        Returns:
            A cell that shares this one's weights.
        """

    def draw(self, trace: ClosedRun, origin: Tensor) -> ClosedRay:
        """Draw the ray of a run; a cell that knows its mean slope in closed form draws its own kind.

        Args:
            trace: the run.
            origin: inputs at α = 0, shape (time, batch, input).

        Returns:
            The ray.
        """
        return ClosedRay(trace, origin)

    def join(self, parts: tuple[Tensor, ...]) -> Tensor:
        """Put the parts of a state side by side, the last one projected.

        Args:
            parts: each (…, d).

        Returns:
            The state, shape (…, state).
        """
        last = parts[-1] if self.weight_hr is None else F.linear(parts[-1], self.weight_hr)
        return last if len(parts) == 1 else torch.cat((*parts[:-1], last), dim=-1)

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute s_t from x_t and s_{t-1}."""
        by_input = F.linear(inputs, self.weight_ih, self.bias_ih)
        by_hidden = F.linear(self.hidden(state), self.weight_hh, self.bias_hh)
        return self.join(self.combine(by_input, by_hidden, state[..., : self.hidden_size]))

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence: the products of all inputs are one."""
        states = [self.checked_start(inputs, state)]
        for by_input in F.linear(inputs, self.weight_ih, self.bias_ih):
            by_hidden = F.linear(self.hidden(states[-1]), self.weight_hh, self.bias_hh)
            states.append(self.join(self.combine(by_input, by_hidden, states[-1][..., : self.hidden_size])))
        return torch.stack(states)

    def run(self, inputs: Tensor, state: Tensor | None = None) -> ClosedRun:
        """Run the cell over a sequence and keep what is needed to open it."""
        states = self.unroll(inputs, state)
        return self.follow(inputs, self.hidden(states[1:]), states[0])

    def follow(self, inputs: Tensor, outputs: Tensor, state: Tensor | None = None) -> ClosedRun:
        """Retrace a run from its hidden outputs alone, all steps at once: no loop over products.

        Where the outputs are those of another implementation, :attr:`ClosedRun.image` is what this cell makes of each
        of its states: comparing the two shows, step by step, whether it is the same network.

        Args:
            inputs: x_1 … x_T, shape (time, batch, input).
            outputs: h_1 … h_T, shape (time, batch, output).
            state: s_0, shape (batch, state).

        Returns:
            The trace.
        """
        first = self.initial_state(inputs.shape[1]) if state is None else state
        before = torch.cat((self.hidden(first)[None], outputs[:-1]))
        by_input = F.linear(inputs, self.weight_ih, self.bias_ih)
        by_hidden = F.linear(before, self.weight_hh, self.bias_hh)
        if len(self.carry) == 1:
            image = self.join(self.combine(by_input, by_hidden, before))
            return ClosedRun(self, inputs, first, image, by_input, by_hidden, before)
        d = self.hidden_size
        carried = [first[:, :d]]
        squashed = []
        for x, h in zip(by_input, by_hidden, strict=True):
            cell, hidden = self.combine(x, h, carried[-1])
            carried.append(cell)
            squashed.append(hidden)
        cells = torch.stack(carried)
        image = self.join((cells[1:], torch.stack(squashed)))
        return ClosedRun(self, inputs, first, image, by_input, by_hidden, cells[:-1])
