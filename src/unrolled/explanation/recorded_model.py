r"""One held run of a model that records every call of its recurrent networks as strands.

The states of a strand are leaves of the recorded graph: between them and the output lies what the model does with them,
and nothing that a recurrence does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.cells.base import Cell, LayerRun
from unrolled.cells.batch_layout import Layout
from unrolled.cells.closed_run import ClosedRay
from unrolled.decomposition.affine_sequence import AffineSequence, expand_layers
from unrolled.decomposition.held_model import HeldModel
from unrolled.decomposition.layer_runs import run_layers
from unrolled.decomposition.own_cell import STEPS
from unrolled.decomposition.recorded_networks import RecordedNetworks
from unrolled.decomposition.recurrent_rules import RECURRENT
from unrolled.decomposition.step_calls import StepForm
from unrolled.errors import ParityError, UnsupportedOperationError
from unrolled.expansions.base import Linearisation
from unrolled.expansions.secant import Secant
from unrolled.explanation.strands import Continuation, Strand, find_continuation, find_levels_below, reads
from unrolled.held_forward.mode import carries
from unrolled.held_forward.recorded_maps import PositionMap, image
from unrolled.held_forward.rows import Rows

__all__ = ["RecordedModel"]

# Largest allowed difference of the states: rounding of a few hundred steps.
PARITY = {torch.float64: 1e-9, torch.float32: 1e-3}


class RecordedModel(HeldModel):
    """A held forward that records the calls of recurrent networks.

    Args:
        rows: Collects the sources of value.
        networks: Paths of the networks whose calls are recorded; the others are held as operations.
        member: How the strands' states are expanded.
        separate: Paths of networks that are no level of a stack.
        probe: Replaces the states that the model reads, to see what it does with others.
        recorded: What the networks gave in a plain run.
    """

    sources = HeldModel.sources | RECURRENT | STEPS

    def __init__(
        self,
        rows: Rows,
        networks: Iterable[str],
        member: Linearisation,
        separate: frozenset[str] = frozenset(),
        probe: Callable[[Tensor], Tensor] | None = None,
        recorded: RecordedNetworks | None = None,
    ) -> None:
        super().__init__(rows, Secant(), recorded=recorded)
        self.networks, self.member, self.separate = frozenset(networks), member, separate
        self.probe = probe
        self.strands: list[Strand] = []
        self._running: list[tuple[str, Tensor | None]] = []
        self._calls = 0

    @contextmanager
    def watching(self, model: nn.Module, paths: Iterable[str], forms: Mapping[str, StepForm]) -> Iterator[None]:
        """Note which of these modules runs, until the end of the block; of some a step has another method."""
        modules = dict(model.named_modules())
        methods = {path: forms[path].method if path in forms else "forward" for path in paths}
        before = [(modules[path], method, modules[path].__dict__.get(method)) for path, method in methods.items()]
        try:
            for path, method in methods.items():
                modules[path].__dict__[method] = self._noted(path, getattr(modules[path], method))
            yield
        finally:
            for module, method, own in before:
                del module.__dict__[method]
                if own is not None:
                    module.__dict__[method] = own

    def _noted(self, path: str, forward: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **kwargs: Any) -> Any:
            packed = next((each for each in (*args, *kwargs.values()) if isinstance(each, PackedSequence)), None)
            self._running.append((path, None if packed is None else packed.sorted_indices))
            try:
                return forward(*args, **kwargs)
            finally:
                self._running.pop()

        return noted

    def run_layers(
        self,
        cells: Sequence[Sequence[Cell]],
        inputs: Tensor,
        layout: Layout,
        initial: Sequence[Tensor | None],
        own: Tensor | None = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Record a call; what it returns is made of the strands' leaves."""
        path, order = self._running[-1] if self._running else ("", None)
        if path not in self.networks:
            return super().run_layers(cells, inputs, layout, initial, own)
        if inputs.dtype not in PARITY:
            raise UnsupportedOperationError(f"{path} reads {inputs.dtype}; convert the model: model.float()")
        call, self._calls = self._calls, self._calls + 1
        ways, scope = len(cells[0]), "tokens"
        finals: list[Tensor] = []
        if ways == 2 and len(cells) > 1:
            count, scope = ways * (len(cells) - 1), f"inputs of layer {len(cells)}"
            given = (inputs, *initial[:count])
            inputs, finals = super().run_layers(cells[:-1], inputs, layout, initial[:count])
            if not any(each is not None and carries(each) for each in given):  # its rows are no value of the model's
                inputs, finals = inputs.detach(), [each.detach() for each in finals]
            cells, initial = cells[-1:], initial[count:]
        tops: Sequence[Tensor | None] = [None] * ways if own is None else own.chunk(ways, dim=-1)
        outputs = []
        for way in range(ways):
            top = tops[way]
            top = layout.reverse(top) if way and top is not None else top
            layers = [level[way] for level in cells]
            starts = [initial[place * ways + way] for place in range(len(layers))]
            made = _Call(path, call, way, ways == 2, layout, scope, order, top)
            strand = self._record(made, layers, layout.reverse(inputs) if way else inputs, starts)
            parts = strand.states.clone().split(strand.sequence.sizes, dim=-1)  # the model may change it in place
            last = (layout.lengths - 1, torch.arange(inputs.shape[1], device=inputs.device))
            finals += [part[last] for part in parts]
            hidden = layers[-1].hidden(parts[-1])
            outputs.append(layout.reverse(hidden) if way else hidden)
        return torch.cat(outputs, dim=-1), finals

    def _record(self, call: _Call, cells: Sequence[Cell], inputs: Tensor, starts: Sequence[Tensor | None]) -> Strand:
        """Run, expand and record one direction of a call."""
        batch, lengths = inputs.shape[1], call.layout.lengths
        firsts = [
            (cell.initial_state(batch) if start is None else start).to(inputs.dtype).expand(batch, -1)
            for cell, start in zip(cells, starts, strict=True)
        ]
        start = torch.cat(firsts, dim=-1)
        before: Continuation | None = None
        below: tuple[tuple[Strand, PositionMap], ...] = ()
        if not call.both:
            before = find_continuation(start, call.network, self.strands)
            if call.network not in self.separate:
                found = find_levels_below(
                    inputs, lengths, call.network, before.before if before else None, self.strands
                )
                before, below = (None, ()) if found is None else (before, found)
        with torch.no_grad():
            runs, parity = _run(cells, inputs.detach(), [each.detach() for each in firsts], call)
            origin = runs[0].inputs
            for strand, link in below:
                origin = origin - link.apply(strand.states.detach() - strand.sequence.g)
            sequence = expand_layers(runs, self.member, self.tolerance, origin)
        alone, carried = self._carried(sequence, inputs, origin, below)
        states = torch.cat([run.image for run in runs], dim=-1)
        if self.probe is not None:
            states = self.probe(states)
        strand = Strand(
            network=call.network,
            call=call.number,
            direction=call.way,
            both=call.both,
            lengths=lengths,
            order=call.order,
            sequence=sequence,
            states=states.requires_grad_(),
            inputs=inputs,
            start=start,
            parity=parity,
            scope=call.scope,
            below=below,
            before=before.before if before else None,
            join=before.join if before else None,
            rows=before.rows if before else None,
            alone=alone,
            carried=carried,
        )
        self.strands.append(strand)
        return strand

    def _carried(
        self, sequence: AffineSequence, inputs: Tensor, origin: Tensor, below: Sequence[tuple[Strand, PositionMap]]
    ) -> tuple[tuple[Tensor, Tensor] | None, Tensor | None]:
        """Return g as a linear function of the beginning of the input's line, and the part of it that is carried."""
        levels = [strand for strand, _ in below]
        others = [strand for strand in reads(inputs, self.strands) if strand not in levels]
        inherited = [link.apply(strand.carried) for strand, link in below if strand.carried is not None]
        if not others and not inherited:
            return None, None
        from_others = image(inputs, [s.states for s in others], [s.states for s in others])
        leaf = origin.detach().clone().requires_grad_()
        g = self.as_function(sequence, leaf)
        return (leaf, g), image(g, [leaf], [sum(inherited, from_others)])

    def as_function(self, sequence: AffineSequence, leaf: Tensor) -> Tensor:
        """Make g of all layers linear in the beginning of the lowest layer's line."""
        of_others, self.expansion = self.expansion, self.member
        try:
            alone, parts = leaf, []
            for run, base in zip(sequence.layers, sequence.g.split(sequence.sizes, dim=-1), strict=True):
                moved = (run.inputs - alone).detach()
                g = self._alone(
                    run.cell,
                    alone,
                    moved if bool(moved.any()) else None,
                    run,
                    run.ray(alone.detach()),
                    base,
                )
                parts.append(g)
                alone = run.cell.hidden(g)
        finally:
            self.expansion = of_others
        return torch.cat(parts, dim=-1)

    def _from_zero(self, ray: ClosedRay, alone: Tensor) -> Tensor:
        """Make f(u⁰, 0) linear by its operations, whose graph can be differentiated twice."""
        return self._step(ray.cell, alone, None)


@dataclass(frozen=True)
class _Call:
    """What is known of a call before it runs."""

    network: str
    number: int
    way: int
    both: bool
    layout: Layout
    scope: str
    order: Tensor | None
    own: Tensor | None
    """The network's own outputs in this direction, shape (time, batch, output)."""


def _run(cells: Sequence[Cell], inputs: Tensor, starts: Sequence[Tensor], call: _Call) -> tuple[list[LayerRun], float]:
    """Run the layers; the top one follows the network's own outputs. Return how far our states are from those, too."""
    runs = [level for (level,) in run_layers([[cell] for cell in cells], inputs, call.layout, starts, call.own)]
    gap = 0.0
    if call.own is not None:
        gap = float(call.layout.blank((cells[-1].hidden(runs[-1].image) - call.own).abs()).max())
    largest = max(1.0, *(float(call.layout.blank(run.image).abs().max()) for run in runs))
    if not gap <= PARITY[inputs.dtype] * largest:
        raise ParityError(f"our states differ from the network's own by {gap:.3g}; expected rounding at most")
    return runs, gap
