r"""All calls of a model's recurrent networks, opened together.

.. math:: F = \sum_{\text{lines}} \sum_t \sum_i w_t^\top v_{i:t} + \text{initial states} + \text{bias}
    + \text{remainder}

One held run records the strands; one backward pass over them gives every w; one forward sweep a line gives its
n-grams. A sequence belongs to the example of the output that reads it.

Source:
    Ours; see ``docs/mathematics.md``.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from unrolled.errors import ParityError, UnrolledError
from unrolled.expansions.base import Linearisation
from unrolled.explanation.calls.calls_behind_held import note_calls_behind_held
from unrolled.explanation.calls.line_numbers import call_with_sources, numbers_of_lines
from unrolled.explanation.calls.numbers_between_calls import note_numbers_between_calls
from unrolled.explanation.calls.opened_lines import OpenedCalls, open_lines
from unrolled.explanation.calls.recorded_runs import RecordedRun, RecordedRuns
from unrolled.explanation.networks.find_network import FoundNetworks
from unrolled.explanation.numbers.no_numbers import not_followed, refuse_tokens_only
from unrolled.explanation.numbers.step_numbers import Numbers
from unrolled.explanation.plain_run import PlainRun
from unrolled.explanation.request import Request
from unrolled.explanation.strands.lines import find_lines
from unrolled.explanation.targets.output_kind import sigmoid_note
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
    runs, held = plain.runs, RecordedRuns(plain, asked.wanted, networks, member)
    with runs.named_draws():
        found = held.first()
    try:
        drawn = runs.second(found.expected, found.target_of) if runs.draws else ()
        opened, follows, of_target = follow_if_held_only(
            lambda numbers: held.run(numbers) if numbers else found,
            lambda one: open_lines(one, lambda probe: held.run(probe=probe), asked.max_order),
        )
    except ParityError:
        with runs.named_draws():
            runs.second(found.expected, found.target_of)  # two runs that differ are refused by name
            raise
    read_calls = {line.line.first.call for line in opened.lines}
    behind = note_calls_behind_held(found, read_calls, plain, networks)
    opened = replace(
        opened,
        is_sigmoid=found.is_sigmoid,
        notes=(*drawn, *sigmoid_note(found.is_sigmoid), *of_target, *opened.notes, *behind),
        deterministic=runs.drew_nothing(drawn),
    )
    return _with_numbers(opened, held, asked, follows)


def _with_numbers(opened: OpenedCalls, held: RecordedRuns, asked: Request, follows: Container[int]) -> OpenedCalls:
    """Add what each number of the arguments contributes, by one more held run; or why that is not known."""
    try:
        refuse_tokens_only(asked.arguments)
        run = held.run(follows, call=lambda mode: call_with_sources(mode, held.plain.model, asked.args, asked.kwargs))
        opened = replace(opened, notes=(*opened.notes, *note_numbers_between_calls(run.mode)))
        return replace(opened, numbers=_numbers(run, opened))
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
