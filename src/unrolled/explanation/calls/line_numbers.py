r"""What each number that a model reads contributes by each line of its recurrent calls.

What a step adds to the states of a strand, g, goes back to the beginning of the strand's line, and from there to the
numbers by the layers that the model computes before the network. A level above others begins where these begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from unrolled.explanation.numbers.no_numbers import (
    BESIDE_TOKENS,
    MIXED,
    SEVERAL,
    MixedNumbersError,
    NoNumbersError,
    NotByStepsError,
)
from unrolled.explanation.numbers.number_places import numbers_of_steps
from unrolled.explanation.numbers.numbers_by_argument import BY_ARGUMENT
from unrolled.explanation.numbers.step_numbers import Numbers
from unrolled.explanation.sources import Sources
from unrolled.explanation.strands.covectors import find_covectors
from unrolled.explanation.strands.lines import Line, find_lines
from unrolled.explanation.strands.recorded_model import RecordedModel
from unrolled.explanation.strands.strand import Strand
from unrolled.held_forward.linear_output import LinearOutput
from unrolled.held_forward.recorded_maps import pull_back
from unrolled.held_forward.tensor_facts.rows import Row

__all__ = ["call_with_sources", "numbers_of_lines"]


def call_with_sources(mode: RecordedModel, model: Any, args: Sequence[object], kwargs: dict[str, object]) -> object:
    """Run a model whose numbers are sources of value."""
    given, named = Sources(mode).open_call(args, kwargs)
    with mode:
        return model(*given, **named)


def numbers_of_lines(
    mode: RecordedModel, output: Tensor, examples: Sequence[Tensor | None]
) -> list[list[Numbers | None]]:
    """Find what each number contributes by each line, for each example; None where a line has none step by step.

    Args:
        mode: Has recorded the strands of a run whose numbers are sources.
        output: The target of each example, with its graph.
        examples: The example that reads each sequence of each line; None for a line that nobody reads.

    Raises:
        NoNumbersError: If the model reads token ids as well, or no line reads a number for each step.
    """
    strands, batch = mode.strands, len(output)
    if any(row.kind == "token" for row in mode.rows.rows):
        raise NoNumbersError(BESIDE_TOKENS)
    direct = LinearOutput(output, [strand.states for strand in strands], keeps=True).gradients
    at_inputs = _at_inputs(mode, find_covectors(strands, direct, whole=True).entering)
    rows = list(mode.rows.rows)
    leaves = [strand.states for strand in strands]
    found: list[list[Numbers | None]] = []
    why: NoNumbersError | None = None
    for line, own in zip(find_lines(strands), examples, strict=True):
        if own is None:
            continue
        known: dict[int, Numbers] = {}
        try:
            known = _of_line(line, own, batch, at_inputs, rows, leaves)
        except NoNumbersError as error:
            why = error if why is None or isinstance(error, MixedNumbersError) else why
        found.append([known.get(example) for example in range(batch)])
    if all(each is None for of_line in found for each in of_line):
        why = why or NotByStepsError()
        raise why.naming(mode.held_names) if isinstance(why, NotByStepsError) else why
    return found


def _of_line(
    line: Line,
    own: Tensor,
    batch: int,
    at_inputs: Mapping[Strand, Tensor],
    rows: Sequence[Row],
    leaves: Sequence[Tensor],
) -> dict[int, Numbers]:
    """Find what each number contributes by one line, for the examples that read its sequences."""
    readers = own[own >= 0]
    if len(readers.unique()) < len(readers):
        raise NoNumbersError(SEVERAL)
    if not len(readers):
        return {}
    total = line.first.states.new_zeros(len(own))
    for strand in line.strands:
        part = (at_inputs[strand] * strand.inputs).sum(dim=(0, 2))
        total = total.index_add(0, strand.rows, part)
    numbers = numbers_of_steps(rows, leaves, total, _read(line), line.inside, (own >= 0).nonzero()[:, 0].tolist())
    if len(readers) < batch and any(BY_ARGUMENT in each.notes for each in numbers):
        raise MixedNumbersError(MIXED)  # the argument holds those of other examples as well
    return dict(zip(readers.tolist(), numbers, strict=True))


def _read(line: Line) -> Tensor:
    """Put what all levels of a line read side by side, shape (time, batch, input); both directions read the same."""
    inputs = {strand: strand.inputs for strand in line.strands}
    levels = line.levels[:1] if line.both else line.levels
    return torch.cat([line.over_steps(level, inputs) for level in levels], dim=-1)


def _at_inputs(mode: RecordedModel, entering: Mapping[Strand, Tensor]) -> dict[Strand, Tensor]:
    """Carry the covectors of g back to what every strand reads, the last strand first."""
    through = {strand: torch.zeros_like(strand.states) for strand in mode.strands}
    found = {}
    for strand in reversed(mode.strands):
        with torch.no_grad():
            origin = strand.inputs.detach()
            for lower, link in strand.below:
                origin = origin - link.apply(lower.moved)
        leaf = origin.clone().requires_grad_()
        with torch.enable_grad():
            g = mode.as_function(strand, leaf)
        (at_line,) = pull_back(g, [leaf], entering[strand] + through[strand])
        found[strand] = torch.zeros_like(origin) if at_line is None else at_line
        for lower, link in strand.below:
            through[lower] += link.apply_transpose(found[strand])
    return found
