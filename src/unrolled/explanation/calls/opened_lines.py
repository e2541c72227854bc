"""The n-grams of every line of a held run, and what else its output is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from unrolled.decomposition.attribution.bands import by_entered, default_longest
from unrolled.decomposition.attribution.score_ngrams import NGramScores
from unrolled.decomposition.attribution.score_spans import DEEP_ORDER
from unrolled.decomposition.held_networks.layer_nodes import LAYER_NODES
from unrolled.decomposition.recurrences.sweep_progress import planned_steps
from unrolled.errors import UnrolledError
from unrolled.explanation.calls.recorded_runs import RecordedRun
from unrolled.explanation.example_of_sequence import complete_examples, other_states
from unrolled.explanation.held_sum import check_sum
from unrolled.explanation.notes import bias_notes
from unrolled.explanation.numbers.no_numbers import NoNumbersError
from unrolled.explanation.numbers.step_numbers import Numbers
from unrolled.explanation.strands.covectors import Covectors, find_covectors, own_start
from unrolled.explanation.strands.lines import Line, find_lines, residual
from unrolled.explanation.strands.strand import Strand
from unrolled.held_forward.graph import check_linear
from unrolled.held_forward.held_only import HeldOnlyError
from unrolled.held_forward.linear_output import LinearOutput
from unrolled.held_forward.operations.coarsest_type import coarsest_type
from unrolled.held_forward.tensor_facts.rows import Row

__all__ = ["OpenedCalls", "OpenedLine", "open_lines"]

Again = Callable[[Callable[[Tensor], Tensor]], RecordedRun]
"""Runs the model held once more, with other states in place of the strands' own."""


@dataclass(frozen=True)
class OpenedLine:
    """One line, and the n-grams of its sequences."""

    line: Line
    examples: Tensor
    """The example that reads each sequence, -1 for none, shape (batch of the line,)."""
    ngrams: NGramScores
    """By sequence; ``initial`` covers the part of the initial states that neither another call nor a bias made."""


@dataclass(frozen=True)
class OpenedCalls:
    """All lines that an output is made of."""

    lines: tuple[OpenedLine, ...]
    logit: Tensor
    """Shape (batch,)."""
    targets: tuple[str, ...]
    """Name of the target of each example."""
    biases: Mapping[str, Tensor]
    """What the model's biases and constants around the networks contribute, by name, each (batch,)."""
    failures: tuple[UnrolledError, ...]
    dtype: torch.dtype
    """The type of least precision in which the model computed."""
    numbers: tuple[tuple[Numbers | None, ...], ...] = ()
    """What each number contributes, by line and example; empty if the model reads none step by step."""
    no_numbers: NoNumbersError = field(default_factory=NoNumbersError)
    """Why it is empty."""
    is_sigmoid: bool = False
    """Whether the target is the result of a sigmoid."""
    notes: tuple[str, ...] = ()
    deterministic: bool = True
    """Whether the model draws no random numbers."""
    held: frozenset[int] = frozenset()
    """Numbers of the held results that the target reads by themselves."""

    @staticmethod
    def mean(members: Sequence[OpenedCalls]) -> OpenedCalls:
        """Average what the members of an expansion give."""
        first, count = members[0], len(members)
        if count == 1:
            return first
        names = dict.fromkeys(name for member in members for name in member.biases)
        zero = torch.zeros_like(first.logit)
        biases = {name: sum((m.biases.get(name, zero) for m in members), zero) / count for name in names}
        # of a member without numbers none adds anything, as at a state of zero
        without = next((member for member in members if not member.numbers), None)
        try:
            numbers, why = _mean_numbers(members) if without is None else (), (without or first).no_numbers
        except NoNumbersError as error:
            numbers, why = (), error
        return replace(
            first,
            lines=tuple(map(_mean_line, zip(*(member.lines for member in members), strict=True))),
            biases=biases,
            failures=tuple(failure for member in members for failure in member.failures),
            numbers=numbers,
            no_numbers=why,
        )

    def known_numbers(self) -> tuple[tuple[Numbers | None, ...], ...]:
        """Return what each number contributes, by line and example.

        Raises:
            NoNumbersError: If that is not known.
        """
        if not self.numbers:
            raise self.no_numbers
        return self.numbers


def _mean_line(members: Sequence[OpenedLine]) -> OpenedLine:
    """Average one line over the members of an expansion; of the residuals the largest stays."""
    found = [each.ngrams for each in members]
    mean = replace(
        found[0],
        scores=torch.stack([each.scores for each in found]).mean(dim=0),
        contributions=torch.stack([each.contributions for each in found]).mean(dim=0),
        tokens=torch.stack([each.tokens for each in found]).mean(dim=0),
        initial=torch.stack([each.initial for each in found]).mean(dim=0),
        residual=torch.stack([each.residual for each in found]).amax(dim=0),
    )
    return replace(members[0], ngrams=mean)


def _mean_numbers(members: Sequence[OpenedCalls]) -> tuple[tuple[Numbers | None, ...], ...]:
    """Average what numbers contribute, by line and example."""
    return tuple(
        tuple(
            Numbers.mean([each for each in of_example if each is not None]) if all(of_example) else None
            for of_example in zip(*of_line, strict=True)
        )
        for of_line in zip(*(member.numbers for member in members), strict=True)
    )


def open_lines(run: RecordedRun, again: Again, longest: int | None) -> OpenedCalls:
    """Find how the output reads every strand, and score the n-grams of the lines that they make.

    Args:
        run: The held run.
        again: Tells who reads which sequence where no gradient does.
        longest: Length of the longest n-grams to tell apart; None for all that fit into memory.
    """
    output, expected, strands, rows = run.output, run.expected, run.strands, run.mode.rows.rows
    for recorded in (output, *(s.inputs for s in strands), *(s.start for s in strands)):
        check_linear(recorded, LAYER_NODES)
    linear = LinearOutput(output, [*(strand.states for strand in strands), *(row.leaf for row in rows)], keeps=True)
    if linear.reads_held_only(range(len(strands)), rows, len(strands)):
        raise HeldOnlyError("the target depends on the states by held results only, if at all")
    parts = linear.split()
    check_sum(output, expected, parts, run.mode.coarsest)
    of_rows = list(zip(rows, parts[len(strands) :], strict=True))
    batch, lines = len(expected), find_lines(strands)
    limit = _limit(lines) if longest is None else longest
    found = find_covectors(strands, linear.gradients[: len(strands)], whole=limit is not None)
    biases = _Biases(batch)
    for row, part in of_rows:
        if part is not None:
            biases.add(row.name, part.detach(), torch.arange(batch, device="cpu"))
    opened = []
    with planned_steps(sum(len(line.inside) * (2 if line.both else 1) for line in lines)):
        for line, examples in zip(lines, _examples(run, lines, again), strict=True):
            if bool((examples >= 0).any()):
                initial = _initial(line, examples, found, strands, rows, biases)
                own_limit = DEEP_ORDER if longest is None and line.coupled else limit
                opened.append(_open_line(line, examples, initial, found, own_limit))
    failures = tuple(s.sequence.failure for s in strands if s.sequence.failure is not None)
    used = {name: part for name, part in biases.parts.items() if bool(part.any())}
    logit = expected.double().cpu()
    from_states = logit - sum(used.values(), torch.zeros_like(logit))
    notes = bias_notes(used, of_rows, run.mode.rows.tables, from_states)
    own = linear.held_by_themselves(rows, len(strands))
    dtype = coarsest_type((expected.dtype, run.mode.coarsest))
    return OpenedCalls(tuple(opened), logit, tuple(run.names), used, failures, dtype, notes=notes, held=own)


def _limit(lines: Sequence[Line]) -> int | None:
    """Return the length of the longest n-grams of all lines that fit into memory; None for all."""
    limits = (default_longest(len(line.inside), 4 if line.both else 2) for line in lines if not line.coupled)
    return min((each for each in limits if each is not None), default=None)


def _open_line(line: Line, examples: Tensor, initial: Tensor, found: Covectors, limit: int | None) -> OpenedLine:
    """Score the n-grams of one line."""
    scores, contributions = line.score(found.weights, limit)
    limited = line.coupled or (limit is not None and limit < len(line.inside))
    tokens = line.by_token(found.entering) if limited else by_entered(contributions)
    off = torch.zeros_like(initial)
    for strand in line.strands:
        off[strand.rows] = torch.maximum(off[strand.rows], residual(strand).cpu())
    return OpenedLine(line, examples, NGramScores(scores, contributions, tokens, initial, off, limit))


def _examples(run: RecordedRun, lines: Sequence[Line], again: Again) -> list[Tensor]:
    """Find the example that reads each sequence of each line, also where no gradient tells."""
    found, batch = run.examples(), len(run.expected)
    if len(lines) == 1 and len(found[0]) == batch:
        order = _order_before_sorting(lines[0])
        back = order.argsort()
        others = (again(change).examples()[0][back] for change in other_states())
        return [complete_examples(found[0][back], others)[order]]
    if batch == 1 and all(bool((each < 0).all()) for each in found):  # a flat relu
        return [torch.zeros_like(each) for each in found]
    return found


def _order_before_sorting(line: Line) -> Tensor:
    """Return the place that each sequence of a line had before the batch was sorted by length, on the CPU."""
    order = line.first.order
    return torch.arange(line.batch, device="cpu") if order is None or len(order) < line.batch else order.cpu()


class _Biases:
    """What rows contribute to each example, by name.

    Args:
        batch: Number of examples.
    """

    def __init__(self, batch: int) -> None:
        self.parts: dict[str, Tensor] = {}
        self._batch = batch

    def add(self, name: str, part: Tensor, examples: Tensor) -> None:
        """Add what a row contributes by each of some sequences to the examples that read them."""
        whole = self.parts.setdefault(name, torch.zeros(self._batch, dtype=torch.float64, device="cpu"))
        whole.index_add_(0, examples.clamp_min(0), torch.where(examples >= 0, part.double().cpu(), 0.0))


def _initial(
    line: Line, examples: Tensor, found: Covectors, strands: Sequence[Strand], rows: Sequence[Row], biases: _Biases
) -> Tensor:
    """Sum what a line's initial states contribute themselves; what rows contribute by them is a part of the biases."""
    initial = torch.zeros(len(examples), dtype=torch.float64, device="cpu")
    for strand in line.strands:
        if strand not in found.starts:
            continue
        covector = found.starts[strand]
        start = own_start(strand, strands, [row.leaf for row in rows])
        initial.index_add_(0, strand.rows, (covector * start).sum(dim=-1).double().cpu())
        if strand.start.requires_grad:
            linear = LinearOutput((covector * strand.start).sum(dim=-1), [row.leaf for row in rows], keeps=True)
            for row, of_start in zip(rows, linear.split(), strict=True):
                if of_start is not None:
                    biases.add(row.name, of_start.detach(), examples[strand.rows])
    return initial
