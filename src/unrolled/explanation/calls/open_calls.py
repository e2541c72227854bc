r"""All calls of a model's recurrent networks, opened together.

.. math:: F = \sum_{\text{lines}} \sum_t \sum_i w_t^\top v_{i:t} + \text{initial states} + \text{bias}
    + \text{remainder}

One held run records the strands; one backward pass over them gives every w; one forward sweep a line gives its
n-grams. A sequence belongs to the example of the output that reads it.

Source:
    Ours; see ``docs/mathematics.md``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from unrolled.errors import ParityError, UnrolledError
from unrolled.expansions.base import Linearisation
from unrolled.explanation.calls.calls_behind_held import note_calls_behind_held
from unrolled.explanation.calls.line_numbers import call_with_sources, numbers_of_lines
from unrolled.explanation.calls.opened_lines import OpenedCalls, open_lines
from unrolled.explanation.calls.recorded_runs import RecordedRun, RecordedRuns
from unrolled.explanation.networks.find_network import FoundNetworks
from unrolled.explanation.numbers.no_numbers import not_followed, refuse_tokens_only
from unrolled.explanation.numbers.step_numbers import Numbers
from unrolled.explanation.plain_run import PlainRun
from unrolled.explanation.request import Request
from unrolled.explanation.strands.lines import find_lines, unfit_stacks
from unrolled.explanation.strands.recorded_model import RecordedModel
from unrolled.explanation.targets.output_kind import sigmoid_note
from unrolled.explanation.targets.select_target import select_target
from unrolled.held_forward.held_only import follow_if_held_only
from unrolled.model_runs.eval_mode import without_autocast

__all__ = ["open_calls"]


def open_calls(plain: PlainRun, asked: Request, networks: FoundNetworks, member: Linearisation) -> OpenedCalls:
    """Open every call of some networks.

    Args:
        plain: The run of the model as it is.
        asked: What the user asks for.
        networks: Which of the model's networks are opened.
        member: How states are expanded.

    Raises:
        UnsupportedOperationError: If the model has an operation without a rule.
        ParityError: If the held run gives another output.
        UsageError: If the target reads none of the networks, or one sequence serves several examples.
    """
    model, runs = plain.model, plain.runs
    held = RecordedRuns(plain, asked.wanted, networks, member)

    def plainly(mode: RecordedModel) -> object:
        with mode:
            return plain.run()

    separate: frozenset[str] = frozenset()
    with runs.named_draws():
        found = held.run(plainly, separate)
        select = partial(select_target, target=found.select, batch=len(found.expected))
        while unfit := unfit_stacks(found.strands):
            separate |= unfit
            found = held.run(plainly, separate)

    def read(one: RecordedRun) -> OpenedCalls:
        return open_lines(one, lambda probe: held.run(plainly, separate, probe=probe), asked.max_order)

    try:
        drawn = runs.second(found.expected, select) if runs.draws else ()
        opened, follows, of_target = follow_if_held_only(
            lambda numbers: held.run(plainly, separate, numbers) if numbers else found, read
        )
    except ParityError:
        with runs.named_draws():
            runs.second(found.expected, select)  # two runs that differ are refused by name
            raise
    read_calls = {line.line.first.call for line in opened.lines}
    behind = note_calls_behind_held(found.strands, read_calls, plain, networks, select, found.expected)
    opened = replace(
        opened,
        is_sigmoid=found.is_sigmoid,
        notes=(*drawn, *sigmoid_note(found.is_sigmoid), *of_target, *opened.notes, *behind),
        deterministic=not (drawn or (runs.seeded and runs.draws)),
    )
    try:
        refuse_tokens_only((asked.args, asked.kwargs))
        again = held.run(lambda mode: call_with_sources(mode, model, asked.args, asked.kwargs), separate, follows)
        return replace(opened, numbers=_numbers(again, opened))
    except (UnrolledError, RuntimeError) as error:
        return replace(opened, no_numbers=not_followed(error))


def _numbers(run: RecordedRun, opened: OpenedCalls) -> tuple[tuple[Numbers | None, ...], ...]:
    """Find what each number contributes by each line, of a run whose numbers are sources."""
    examples = {line.line.first.call: line.examples for line in opened.lines}
    with without_autocast():
        by_line = numbers_of_lines(
            run.mode, run.output, [examples.get(line.first.call) for line in find_lines(run.strands)]
        )
    return tuple(map(tuple, by_line))
