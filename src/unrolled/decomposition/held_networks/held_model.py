r"""A held forward that knows recurrent networks: their states by an expansion, their inputs by shares.

One layer's states follow s_t = G_t + A_t s_{t-1} + C_t Δu_t. Its input is u⁰ + Δu, where u⁰ is what the layers below
make of each token alone. G_t = f(u⁰_t, 0) goes back to u⁰ and the biases by shares; A_t and C_t are those of the
expansion. The state less G_t is the Δu of the layer above. Backward, one sweep a layer and direction carries a
readout from the states to G, Δu and the initial state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.cells.base import Cell, LayerRun
from unrolled.cells.capabilities import ShareSlopesCell
from unrolled.cells.closed_form import ClosedCell
from unrolled.cells.closed_run import ClosedRay
from unrolled.cells.ray import Ray
from unrolled.decomposition.held_networks.layer_nodes import AloneNode, LayerSweep
from unrolled.decomposition.held_networks.recorded_networks import RecordedNetworks
from unrolled.decomposition.opening.layer_runs import NetworkCall, run_layers
from unrolled.expansions.base import TOLERANCE, Linearisation
from unrolled.expansions.shares import Shares
from unrolled.held_forward.mode import HeldForward
from unrolled.held_forward.operations.operands import carries
from unrolled.held_forward.recorded_maps import image
from unrolled.held_forward.tensor_facts.gates import CONTENT_SHARE
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.linalg.structured import pick, used_products

__all__ = ["HeldModel"]

_ROUNDINGS = 100
"""Up to so many roundings of g, what it has beyond f(u⁰, 0) is rounding and nobody's."""


class HeldModel(HeldForward):
    """A held forward that knows recurrent networks.

    Args:
        rows: Collects the sources of value.
        expansion: How the networks' states are rewritten.
        share: p, see :class:`HeldForward`.
        recorded: What the networks gave in a plain run of the same model, if there was one.
    """

    def __init__(
        self,
        rows: Rows,
        expansion: Linearisation,
        share: float = CONTENT_SHARE,
        recorded: RecordedNetworks | None = None,
    ) -> None:
        super().__init__(rows, share)
        self.expansion, self.recorded = expansion, recorded
        self.network_notes: tuple[str, ...] = ()
        """What the run's recurrent networks leave out of the account."""
        self.ran_networks = self.by_quadrature = False
        """Whether a network ran, and whether the operator of a layer was integrated."""

    def opened(self, inputs: Tensor) -> Tensor:
        """Make a row of a network's inputs that carry no value; zeros need none, but the biases of their steps do."""
        opened = inputs if carries(inputs) else self.rows.constant(inputs)
        return opened if carries(opened) else opened.detach().clone().requires_grad_()

    def run_network(self, call: NetworkCall) -> tuple[Tensor, list[Tensor]]:
        """Run the layers of a network.

        Returns:
            The hidden outputs, shape (time, batch, directions · output), and every layer's and direction's final state.
        """
        self.ran_networks = True
        runs, layout = run_layers(call.detached()), call.layout
        alone, output = call.inputs, call.inputs
        moved: Tensor | None = None
        finals = []
        for level, layer in enumerate(runs):
            top = level == len(runs) - 1
            outputs, bases = [], []
            for way, run in enumerate(layer):
                start, cell = call.initial[level * len(layer) + way], run.cell
                above = None if moved is None else layout.turn(moved, way)
                reads = self.rows.move(alone, layout.reverse) if way else alone
                states, base = self._layer(cell, reads, above, start, run)
                finals.append(layout.last(states))
                outputs.append(cell.hidden(states))
                bases.append(cell.hidden(base))
            output = layout.in_token_order(outputs)
            if not top:
                alone = layout.in_token_order(bases)
                moved = output - alone
        return output, finals

    def _layer(
        self, cell: Cell, alone: Tensor, moved: Tensor | None, start: Tensor | None, run: LayerRun
    ) -> tuple[Tensor, Tensor]:
        """Return the states of one layer in one direction, and what each token alone makes of them."""
        rows, first = self.rows, run.initial
        with torch.no_grad():
            ray = run.ray(run.inputs if moved is None else alone.detach())
            base, operator = self.expansion.expand_checked(
                ray, TOLERANCE / max(1, len(run.inputs))
            )  # an equal share a step
            self.by_quadrature = self.by_quadrature or operator.by_quadrature
        if start is None or not carries(start):
            start = rows.open("initial", "initial state", first) if bool(first.count_nonzero()) else first
        held = self._alone(cell, alone, moved, run, ray, base)
        return LayerSweep.apply(held, moved, start, run, operator), held

    def _alone(
        self, cell: Cell, alone: Tensor, moved: Tensor | None, run: LayerRun, ray: Ray[Any], base: Tensor
    ) -> Tensor:
        """Make g, what each step adds to the state, linear in the step's own input and the biases."""
        # By secant and path g is f(u⁰, 0), and by shares the part of f(u⁰ + Δu, s) that is not that of Δu and s; both
        # follow shares. What g has beyond that is credited to u⁰: with other expansions it depends on the state, and
        # by shares the cell's operator shares some products otherwise, such as those of two gates.
        if not isinstance(self.expansion, Shares):
            return self._alone_without_state(cell, alone, ray, base)
        of_others, self.share = self.share, self.expansion.share
        try:
            if isinstance(ray, ClosedRay) and ray.is_affine:
                return self._alone_without_state(cell, alone, ray, base)
            others = [each.detach().requires_grad_() for each in (run.states[:-1], moved) if each is not None]
            found = self._step(cell, alone if moved is None else alone + others[1], others[0])
            if isinstance(cell, ShareSlopesCell):
                return found - (found.detach() - base)
            return self._credited(found - image(found, others, others), base, alone)
        finally:
            self.share = of_others

    def _alone_without_state(self, cell: Cell, alone: Tensor, ray: Ray[Any], base: Tensor) -> Tensor:
        """Make f(u⁰, 0) linear, and credit what g adds to it to u⁰."""
        if isinstance(ray, ClosedRay) and isinstance(cell, ShareSlopesCell):
            found = self._from_zero(ray, alone)
        else:
            found = self._step(cell, alone, None)
        return found if base is ray.origin else self._credited(found, base, alone)

    def _credited(self, found: Tensor, base: Tensor, alone: Tensor) -> Tensor:
        """Add what g has beyond what was found; it is credited to u⁰."""
        rest = base - found.detach()
        if float(rest.abs().max()) <= _ROUNDINGS * torch.finfo(rest.dtype).eps * max(1.0, float(base.abs().max())):
            return found
        size = alone.detach().square().sum(dim=-1, keepdim=True)
        share = (alone * alone.detach()).sum(dim=-1, keepdim=True) / torch.where(size > 0, size, torch.ones_like(size))
        return found + rest * share + self.rows.constant(torch.where(size > 0, torch.zeros_like(rest), rest))

    def _from_zero(self, ray: ClosedRay, alone: Tensor) -> Tensor:
        """Make f(u⁰, 0) linear in u⁰ and the biases by the cell's own formula."""
        cell, batch = ray.cell, alone.shape[1]
        with torch.no_grad():
            value, operator = ray.origin, ray.alone_by_shares(self.share)
            used = [used_products(terms) for terms in (operator.input_terms, operator.recurrent_terms)]
            input_rows, hidden_rows = (count * cell.hidden_size for count in cell.products)
            nothing = (value.new_zeros(1, size) for size in (input_rows, hidden_rows, cell.hidden_size))
            at_zero = cell.join_parts(cell.elementwise(*nothing))
            shifted = bool(at_zero.count_nonzero())  # a sigmoid is ½ where nothing comes in
            value = value - at_zero if shifted else value
        given = zip((cell.bias_ih, cell.recurrent_bias), used, strict=True)
        biases = [None if b is None else self._bias(b, products, cell.hidden_size, batch) for b, products in given]
        operator = operator.packed()
        weights = self.rows.token_weights(alone)
        source = alone if weights is None else weights
        to_source = operator.inputs.__rmatmul__ if weights is None else _to_tokens(ray, used[0])
        found: Tensor = AloneNode.apply(source, *biases, value, operator, to_source)
        return found + self.rows.constant(at_zero.expand_as(value)) if shifted else found

    def _bias(self, bias: Tensor, products: list[int], units: int, batch: int) -> Tensor | None:
        """Make a row of the used products' part of a bias, the same for every example; None if it is zero."""
        part = pick(bias.detach(), products, units, axis=0)
        if not bool(part.count_nonzero()):
            return None
        return self.rows.summand(self.rows.origin(bias), part, (batch, len(part)))

    def _step(self, cell: Cell, inputs: Tensor, state: Tensor | None) -> Tensor:
        """Compute f, linear in the inputs, the state if there is one, and the biases."""
        with self:
            if not isinstance(cell, ClosedCell):
                # of value zero, and no row: the bias of a product with the state is a row as others are
                empty = inputs.detach().new_zeros(*inputs.shape[:-1], cell.state_size).requires_grad_()
                return cell.step(inputs, empty if state is None else state)
            from_input = nn.functional.linear(inputs, cell.weight_ih, cell.bias_ih)
            lead = inputs.shape[:-1]
            if state is None:
                from_hidden = inputs.new_zeros(*lead, len(cell.recurrent_weight))
                carried = inputs.new_zeros(*lead, cell.hidden_size)
            else:
                from_hidden = nn.functional.linear(cell.hidden(state), cell.recurrent_weight)
                carried = state[..., : cell.hidden_size]
            if cell.recurrent_bias is not None:
                kind, name, _ = self.rows.origin(cell.recurrent_bias)
                from_hidden = from_hidden + self.rows.open(kind, name, cell.recurrent_bias.expand(from_hidden.shape))
            return cell.join_parts(cell.elementwise(from_input, from_hidden, carried))


def _to_tokens(ray: ClosedRay, used: Sequence[int]) -> Callable[[Tensor], Tensor]:
    """Return what takes covectors of the products W x to the contribution of each token, without a product with W."""
    bias, units = ray.cell.bias_ih, ray.cell.hidden_size
    products = pick(ray.start, used, units, axis=-1)
    if bias is None:
        return lambda covectors: torch.linalg.vecdot(covectors, products)[..., None]
    added = pick(bias.detach(), used, units, axis=0)
    return lambda covectors: (torch.linalg.vecdot(covectors, products) - covectors @ added)[..., None]
