r"""One held run of a model that records every call of its recurrent networks as strands.

The states of a strand are leaves of the recorded graph: between them and the output lies what the model does with them,
and nothing that a recurrence does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unrolled.cells.base import LayerRun
from unrolled.decomposition.held_networks.held_model import HeldModel
from unrolled.decomposition.held_networks.recorded_networks import RecordedNetworks
from unrolled.decomposition.held_networks.recurrent_rules import RECURRENT
from unrolled.decomposition.opening.layer_runs import NetworkCall, run_layers, states_parity
from unrolled.decomposition.opening.parity import FINER, PARITY
from unrolled.decomposition.own_steps.own_step_rule import OWN_STEPS
from unrolled.decomposition.recurrences.affine_sequence import AffineSequence, expand_layers
from unrolled.decomposition.recurrences.bidirectional_stack import BidirectionalStack, expand_stack
from unrolled.errors import NonFiniteError, ParityError, UnsupportedOperationError
from unrolled.expansions.base import TOLERANCE, Linearisation
from unrolled.expansions.secant import Secant
from unrolled.explanation.strands.continuations import Continuation, find_continuation
from unrolled.explanation.strands.known_layers import KnownLayers
from unrolled.explanation.strands.running_networks import RunningNetworks
from unrolled.explanation.strands.strand import Strand, find_levels_below, strands_read
from unrolled.held_forward.recorded_maps import PositionMap, image
from unrolled.held_forward.tensor_facts.rows import Rows

__all__ = ["RecordedModel"]


class RecordedModel(HeldModel):
    """A held forward that records the calls of recurrent networks.

    Args:
        rows: Collects the sources of value.
        networks: Paths of the networks whose calls are recorded; the others are held as operations.
        member: How the strands' states are expanded.
        separate: Paths of networks that are no level of a stack.
        probe: Replaces the states that the model reads, to see what it does with others.
        recorded: What the networks gave in a plain run.
        known: The layers that earlier runs of the model have expanded, by the same member.
    """

    begins_value = HeldModel.begins_value | RECURRENT | OWN_STEPS

    def __init__(
        self,
        rows: Rows,
        networks: Iterable[str],
        member: Linearisation,
        separate: frozenset[str] = frozenset(),
        probe: Callable[[Tensor], Tensor] | None = None,
        recorded: RecordedNetworks | None = None,
        known: KnownLayers | None = None,
    ) -> None:
        super().__init__(rows, Secant(), recorded=recorded)
        self.networks, self.member, self.separate = frozenset(networks), member, separate
        self.probe, self.known = probe, known or KnownLayers()
        self.strands: list[Strand] = []
        self.running = RunningNetworks()
        self.met: set[str] = set()
        """Paths of the networks whose kernel or step the run has met."""
        self._calls = 0
        self.in_target = False
        """Whether the model has returned: the target's calls on another input, as of a baseline, are operations."""

    def run_network(self, call: NetworkCall) -> tuple[Tensor, list[Tensor]]:
        """Record a call; what it returns is made of the strands' leaves."""
        path, order = self.running.now
        inputs = call.inputs
        self.met.add(path)
        if path not in self.networks or not inputs.shape[1] or (self.in_target and not self._reads_strands(call)):
            self._calls += path in self.networks  # a step that no example takes part in
            return super().run_network(call)
        if inputs.dtype not in PARITY:
            raise UnsupportedOperationError(f"{path} reads {inputs.dtype}; {FINER}")
        numbered = _NumberedCall(path, self._calls, order, _with_states(call))
        self._calls += 1
        ways = call.directions
        if ways == 2 and len(call.cells) > 1:
            strands = self._record_stack(numbered)
        else:
            strands = [self._record(numbered, way) for way in range(ways)]
        parts = [each.states.clone().split(each.sequence.sizes, dim=-1) for each in strands]  # it may change in place
        last = (call.layout.lengths - 1, torch.arange(inputs.shape[1], device=inputs.device))
        finals = [parts[way][level][last] for level in range(len(call.cells)) for way in range(ways)]
        hidden = [cell.hidden(of_way[-1]) for cell, of_way in zip(call.cells[-1], parts, strict=True)]
        return call.layout.in_token_order(hidden), finals

    def _reads_strands(self, call: NetworkCall) -> bool:
        """Whether the input of a call, or the state that it begins with, is made of recorded states."""
        return any(strands_read(each, self.strands) for each in (call.inputs, *call.initial) if each is not None)

    def _record(self, numbered: _NumberedCall, way: int) -> Strand:
        """Run, expand and record one direction of a call."""
        call = _one_direction(numbered.call, way)
        inputs, lengths, start = call.inputs, call.layout.lengths, _side_by_side(call.initial)
        before: Continuation | None = None
        below: tuple[tuple[Strand, PositionMap], ...] = ()
        if not numbered.both:
            network = numbered.network
            before = find_continuation(start, network, self.strands)
            if network not in self.separate:
                candidates = [each for each in self.strands if each.network not in self.separate]
                found = find_levels_below(inputs, lengths, network, before.before if before else None, candidates)
                before, below = (None, ()) if found is None else (before, found)
        with torch.no_grad():
            levels, parity = _run(call)
            runs = [level for (level,) in levels]
            origin = runs[0].inputs
            for strand, link in below:
                origin = origin - link.apply(strand.moved)
            sequence = self.known.expanded((numbered.number, way), runs, origin, self._expand)
        strand = self._strand(numbered, way, sequence, inputs, start, parity)
        strand.below = below
        if before is not None:
            before.append(strand)
        self._carry(strand, origin)
        self.strands.append(strand)
        return strand

    def _expand(self, runs: Sequence[LayerRun], origin: Tensor) -> AffineSequence:
        return expand_layers(runs, self.member, TOLERANCE, origin)

    def _record_stack(self, numbered: _NumberedCall) -> list[Strand]:
        """Run, expand and record both directions of a call whose layers read both directions of those below."""
        call = numbered.call
        with torch.no_grad():
            runs, parity = _run(call)
            stack = expand_stack([*zip(*runs, strict=True)], call.layout, self.member, TOLERANCE)
        strands = []
        for way, levels in enumerate(zip(*stack.levels, strict=True)):
            sequence = AffineSequence(
                torch.cat([level.g for level in levels], dim=-1),
                tuple(operator for level in levels for operator in level.operators),
                tuple(run for level in levels for run in level.layers),
                stack.failure,
            )
            start = _side_by_side(call.initial[way :: call.directions])
            strand = self._strand(numbered, way, sequence, call.inputs, start, parity)
            strand.stack = stack
            self._carry(strand, call.inputs.detach())
            strands.append(strand)
        self.strands += strands
        return strands

    def _strand(
        self, numbered: _NumberedCall, way: int, sequence: AffineSequence, inputs: Tensor, start: Tensor, parity: float
    ) -> Strand:
        """Make a strand that hangs together with no other."""
        states = torch.cat([run.image for run in sequence.layers], dim=-1)
        states = states if self.probe is None else self.probe(states)
        return Strand(
            network=numbered.network,
            call=numbered.number,
            direction=way,
            both=numbered.both,
            lengths=numbered.call.layout.lengths,
            order=numbered.order,
            sequence=sequence,
            states=states.requires_grad_(),
            inputs=inputs,
            start=start,
            parity=parity,
        )

    def _carry(self, strand: Strand, origin: Tensor) -> None:
        """Note g as a linear function of the beginning of the input's line, and the part of it that is carried."""
        levels = [lower for lower, _ in strand.below]
        others = [each for each in strands_read(strand.inputs, self.strands) if each not in levels]
        inherited = [link.apply(lower.carried) for lower, link in strand.below if lower.carried is not None]
        if not others and not inherited:
            return
        from_others = image(strand.inputs, [s.states for s in others], [s.states for s in others])
        leaf = origin.detach().clone().requires_grad_()
        g = self.as_function(strand, leaf)
        strand.alone, strand.carried = (leaf, g), image(g, [leaf], [sum(inherited, from_others)])

    def as_function(self, strand: Strand, leaf: Tensor) -> Tensor:
        """Make a strand's g, of all layers, linear in the beginning of the lowest layer's line."""
        of_others, self.expansion = self.expansion, self.member
        try:
            if strand.stack is not None:
                return self._of_stack(strand.stack, leaf)[strand.direction]
            alone, parts = leaf, []
            sequence = strand.sequence
            for run, base in zip(sequence.layers, sequence.g.split(sequence.sizes, dim=-1), strict=True):
                parts.append(self._of_layer(run, alone, base))
                alone = run.cell.hidden(parts[-1])
        finally:
            self.expansion = of_others
        return torch.cat(parts, dim=-1)

    def _of_stack(self, stack: BidirectionalStack, alone: Tensor) -> list[Tensor]:
        """Make g of both directions linear in what the tokens alone are, in token order."""
        parts: tuple[list[Tensor], list[Tensor]] = ([], [])
        for level in stack.levels:
            above = []
            for way, layer in enumerate(level):
                (run,) = layer.layers
                parts[way].append(self._of_layer(run, stack.layout.turn(alone, way), layer.g))
                above.append(run.cell.hidden(parts[way][-1]))
            alone = stack.layout.in_token_order(above)
        return [torch.cat(each, dim=-1) for each in parts]

    def _of_layer(self, run: LayerRun, alone: Tensor, base: Tensor) -> Tensor:
        """Make g of one layer linear in what the tokens alone are."""
        moved = (run.inputs - alone).detach()
        return self._alone(run.cell, alone, moved if bool(moved.any()) else None, run, run.ray(alone.detach()), base)


@dataclass(frozen=True)
class _NumberedCall:
    """A call that is recorded: whose it is, and its number among the calls of all networks."""

    network: str
    number: int
    order: Tensor | None
    call: NetworkCall

    @property
    def both(self) -> bool:
        """Whether the network reads in both directions."""
        return self.call.directions == 2


def _with_states(call: NetworkCall) -> NetworkCall:
    """Give every layer and direction an initial state for each example, shape (batch, state)."""
    batch, cells = call.inputs.shape[1], [cell for ways in call.cells for cell in ways]
    given = [
        (cell.initial_state(batch) if start is None else start).to(call.inputs.dtype).expand(batch, -1)
        for cell, start in zip(cells, call.initial, strict=True)
    ]
    return replace(call, initial=given)


def _one_direction(call: NetworkCall, way: int) -> NetworkCall:
    """Return the part of a call that reads in one direction, in the order in which it reads."""
    own = None if call.own is None else call.layout.turn(call.own.chunk(call.directions, dim=-1)[way], way)
    cells = [[level[way]] for level in call.cells]
    return NetworkCall(
        cells, call.layout.turn(call.inputs, way), call.layout, call.initial[way :: call.directions], own
    )


def _side_by_side(states: Sequence[Tensor | None]) -> Tensor:
    """Join the initial states of all layers of a direction; those of a recorded call are all known."""
    return torch.cat([state for state in states if state is not None], dim=-1)


def _run(call: NetworkCall) -> tuple[list[list[LayerRun]], float]:
    """Run the layers; the top one follows the network's own outputs. Return how far our states are from those, too."""
    runs = run_layers(call.detached())
    if call.own is None:
        return runs, 0.0
    states = (run.image for level in runs for run in level)  # all of them are opened, and they may be larger
    parity = states_parity(runs, call.detached(), PARITY[call.inputs.dtype], states)
    if not parity.holds:
        if not bool(call.layout.blank(call.own).isfinite().all()):
            raise NonFiniteError("the states of a recurrent network hold NaN or infinity; expected finite numbers")
        raise ParityError(f"our states differ from the network's own by {parity.gap:.3g}; expected rounding at most")
    return runs, parity.gap
