"""Held runs of a model that record all calls of its recurrent networks."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field

import torch
from torch import Tensor

from unrolled.errors import UsageError
from unrolled.expansions.base import Linearisation
from unrolled.explanation.example_of_sequence import example_of_sequence, weighed_sums
from unrolled.explanation.examples import count_examples, refuse_no_tokens
from unrolled.explanation.networks.find_network import FoundNetworks
from unrolled.explanation.networks.own_forwards import NoKernelError, has_own_forward
from unrolled.explanation.plain_run import PlainRun
from unrolled.explanation.strands.covectors import weights_of_targets
from unrolled.explanation.strands.known_layers import KnownLayers
from unrolled.explanation.strands.lines import find_lines, unfit_stacks
from unrolled.explanation.strands.recorded_model import RecordedModel
from unrolled.explanation.strands.strand import Strand
from unrolled.explanation.targets.output_kind import are_sigmoids
from unrolled.explanation.targets.select_target import Target, select_target
from unrolled.explanation.targets.wanted import Wanted
from unrolled.held_forward.linear_output import LinearOutput
from unrolled.held_forward.operations.coarsest_type import coarsest_type
from unrolled.held_forward.outside.taken_places import CodePlace, TakenPlaces
from unrolled.held_forward.runs_that_fail import failures_refused
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.model_runs.eval_mode import without_autocast
from unrolled.model_runs.nested_tensors import tensors_in
from unrolled.model_runs.taken_numbers import refuse_read_numbers
from unrolled.user_models.all_modules import all_modules, is_within

__all__ = ["RecordedRun", "RecordedRuns"]


@dataclass(frozen=True)
class RecordedRun:
    """One held run, and the strands that it has recorded."""

    output: Tensor
    """The target of each example, with its graph, shape (batch,)."""
    expected: Tensor
    """What the model itself gives."""
    select: Target
    names: list[str]
    """Name of the target of each example."""
    mode: RecordedModel
    """Has recorded the strands."""
    is_sigmoid: bool
    """Whether the target is the result of a sigmoid."""

    @property
    def strands(self) -> list[Strand]:
        """The recorded calls."""
        return self.mode.strands

    def target_of(self, output: object) -> Tensor:
        """Select the target of each example from what another run of the model returned."""
        return select_target(output, self.select, len(self.expected))

    def examples(self) -> list[Tensor]:
        """Find the example that reads each sequence of each line, -1 for none."""
        strands = self.strands
        coarsest = coarsest_type((self.mode.coarsest, *(strand.states.dtype for strand in strands)))
        linear = LinearOutput(self.output, [strand.states for strand in strands], keeps=True)
        _, *sums = weighed_sums(self.output, coarsest)
        gradients = (linear.gradients, *map(linear.differentiate, sums))  # the first are those of the plain sum
        passes = weights_of_targets(strands, gradients)
        return [
            example_of_sequence(
                [[weights[strand] for strand in line.strands] for weights in passes],
                [strand.rows for strand in line.strands],
                line.batch,
                len(self.expected),
                coarsest,
            )
            for line in find_lines(strands)
        ]


@dataclass(frozen=True)
class RecordedRuns:
    """Runs a model held, and records the calls of its networks."""

    plain: PlainRun
    """The run of the model as it is."""
    wanted: Wanted
    networks: FoundNetworks
    member: Linearisation
    """How states are expanded."""
    separate: set[str] = field(default_factory=set)
    """Paths of networks that the runs so far have shown to be no level of a stack."""
    known: KnownLayers = field(default_factory=KnownLayers)
    """The layers that the runs have expanded so far."""
    unread: set[CodePlace] = field(default_factory=set)
    """Where the model takes numbers that the runs so far have shown to be read by no output."""

    def first(self) -> RecordedRun:
        """Run the model held, once more where networks have to be kept apart that are no levels of one stack."""
        found = self.run()
        while unfit := unfit_stacks(found.strands):
            self.separate.update(unfit)
            found = self.run()
        return found

    def run(
        self,
        follows: Container[int] = (),
        *,
        call: Callable[[RecordedModel], object] | None = None,
        probe: Callable[[Tensor], Tensor] | None = None,
    ) -> RecordedRun:
        """Run the model held once.

        Args:
            follows: Numbers of the held results that are followed.
            call: Calls the model under a mode; None for the arguments as they are.
            probe: Replaces the states that the model reads, to see what it does with others.
        """
        self.plain.recorded.begin()
        model, networks = self.plain.model, self.networks
        of_model = (self.plain.recorded, self.known) if probe is None else (None, None)
        rows = Rows(model)
        self.plain.run.mark_numbers(rows)
        mode = RecordedModel(rows, networks.opened, self.member, frozenset(self.separate), probe, *of_model)
        mode.follows, mode.taken = follows, TakenPlaces()
        of_users = self._with_own_forwards()  # asked before stand-ins, which look like forwards of a user's
        with torch.enable_grad(), without_autocast():
            with mode.running.noted(model, networks.methods, networks.steps):
                with failures_refused():
                    whole = self._run_plainly(mode) if call is None else call(mode)
                self._refuse_without_kernel(mode, of_users)
                if not mode.strands:
                    refuse_no_tokens(each.shape for each in tensors_in(self.plain.run.arguments))
                    raise UsageError(
                        f"the model gives no sequence to {', '.join(networks.opened)}; if it runs a step of its own "
                        "instead, name that: rnn=unrolled.as_cell('its path'); unrolled.account opens any model"
                    )
                batch = self._count_examples(mode.strands)
                choice = self.wanted.choose_one(self.plain.output, batch)
                select = choice.targets[0]
                mode.in_target = True
                with mode:
                    output = select_target(whole, select, batch)
            (probability,) = are_sigmoids([output], mode)
        expected = select_target(self.plain.output, select, batch).detach()
        if probe is None:
            refuse_read_numbers(
                mode.taken, lambda: [select_target(self.plain.run(), select, batch)], [expected], self.unread
            )
        return RecordedRun(output, expected, select, list(choice.names), mode, probability)

    def _run_plainly(self, mode: RecordedModel) -> object:
        with mode:
            return self.plain.run()

    def _with_own_forwards(self) -> list[str]:
        """List the networks by their class whose forward is another than torch's."""
        modules = all_modules(self.plain.model)
        return [path for path in self.networks.opened if has_own_forward(modules[path])]

    def _refuse_without_kernel(self, mode: RecordedModel, of_users: list[str]) -> None:
        """Refuse networks that are some by their class alone, and neither run a kernel nor hold a network that does."""
        without = [
            path
            for path in of_users
            if path in mode.running.ran - mode.met and not any(is_within(each, path) for each in mode.met)
        ]
        if without:
            raise NoKernelError(without)

    def _count_examples(self, strands: list[Strand]) -> int:
        first = [strand for strand in strands if strand.before is None and strand.direction == 0]
        sequences = sum(strand.sequences_of_chain for strand in first)
        return count_examples(
            self.plain.output, self.wanted.target, [len(strand.lengths) for strand in strands], sequences
        )
