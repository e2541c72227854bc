r"""All calls of a model's recurrent networks, opened together.

.. math:: F = \sum_{\text{lines}} \sum_t \sum_i w_t^\top v_{i:t} + \text{initial states} + \text{bias}
    + \text{remainder}

One held run records the strands; one backward pass over them gives every w; one forward sweep a line gives its
n-grams. A sequence belongs to the example of the output that reads it.

Source:
    Ours; see ``docs/mathematics.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor, nn

from unrolled.decomposition.bands import by_entered, default_longest
from unrolled.decomposition.determinism import TwoRuns
from unrolled.decomposition.eval_mode import without_autocast
from unrolled.decomposition.layer_nodes import NODES
from unrolled.decomposition.preserve_model import without_gradients
from unrolled.decomposition.recorded_networks import RecordedNetworks
from unrolled.decomposition.recurrent_rules import networks_as_operations
from unrolled.decomposition.score_spans import DEEP_ORDER
from unrolled.decomposition.step_calls import StepForm, steps_as_operations
from unrolled.errors import (
    ConvergenceError,
    ParityError,
    UnrolledError,
    UsageError,
)
from unrolled.expansions.base import Linearisation
from unrolled.explanation.covectors import find_covectors, own_start
from unrolled.explanation.examples import complete_owners, count_examples, find_owners
from unrolled.explanation.held_sum import check_sum
from unrolled.explanation.line_numbers import call_with_sources, numbers_of_lines
from unrolled.explanation.lines import Line, find_lines, residual, unfit_stacks
from unrolled.explanation.no_numbers import ONLY_TOKENS, NoNumbersError, not_followed
from unrolled.explanation.notes import held_notes
from unrolled.explanation.number_places import Numbers, has_numbers
from unrolled.explanation.output_kind import is_sigmoid, sigmoid_note
from unrolled.explanation.readout import Target, select_target
from unrolled.explanation.recorded_model import RecordedModel
from unrolled.explanation.request import Request
from unrolled.explanation.strands import Strand
from unrolled.held_forward.graph import check_linear
from unrolled.held_forward.held_only import HeldOnlyError, follow_if_held_only
from unrolled.held_forward.linear_output import LinearOutput
from unrolled.held_forward.rows import Row, Rows

__all__ = ["OpenedCalls", "OpenedLine", "open_calls"]

SCALES = (0.5, 0.0625, -1.0)
"""Multiples of the states that are tried first, and then how often random ones are."""
RANDOM_PROBES = 8


@dataclass(frozen=True)
class OpenedLine:
    """The n-grams of one line. All tensors are float64 on the CPU."""

    line: Line
    owners: Tensor
    """The example that reads each sequence, -1 for none, shape (batch of the line,)."""
    scores: Tensor
    """Bands, shape (batch of the line, directions, time, longest)."""
    contributions: Tensor
    """The same shape."""
    tokens: Tensor
    """Contributions of all n-grams that enter at each token, of any length, shape (batch of the line, time)."""
    initial: Tensor
    """What the initial states contribute that neither another call nor a bias made, shape (batch of the line,)."""
    residual: Tensor
    """Shape (batch of the line,)."""
    longest: int | None
    """Length of the longest n-grams that are told apart; None for all."""


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
    failures: tuple[ConvergenceError, ...]
    dtype: torch.dtype
    """The type in which the model computed."""
    numbers: tuple[tuple[Numbers | None, ...], ...] = ()
    """What each number contributes, by line and example; empty if the model reads none step by step."""
    no_numbers: NoNumbersError = field(default_factory=NoNumbersError)
    """Why it is empty."""
    is_sigmoid: bool = False
    """Whether the target is the result of a sigmoid."""
    notes: tuple[str, ...] = ()
    deterministic: bool = True
    """Whether the model draws no random numbers."""


def open_calls(
    model: nn.Module,
    run: Callable[[], object],
    plain: object,
    asked: Request,
    networks: Mapping[str, bool],
    forms: Mapping[str, StepForm],
    member: Linearisation,
    recorded: RecordedNetworks,
    runs: TwoRuns,
) -> OpenedCalls:
    """Open every call of some networks.

    Args:
        model: In evaluation mode.
        run: Runs it.
        plain: What it returns.
        asked: What the user asks for.
        networks: Paths of all recurrent networks, and whether their calls are to be opened.
        forms: Those of them that are steps of the user's own.
        member: How states are expanded.
        recorded: What the networks gave in that run.
        runs: Refuses a model that draws random numbers.

    Raises:
        UnsupportedOperationError: If the model has an operation without a rule.
        ParityError: If the held run gives another output.
        UsageError: If the target reads none of the networks, or one sequence serves several examples.
    """
    wanted, longest = asked.wanted, asked.max_order
    opens = [path for path, opens in networks.items() if opens]

    def plainly(mode: RecordedModel) -> object:
        with mode:
            return run()

    def held(
        probe: Callable[[Tensor], Tensor] | None,
        separate: frozenset[str],
        follows_from: int | None = None,
        call: Callable[[RecordedModel], object] = plainly,
    ) -> _HeldRun:
        recorded.begin()
        mode = RecordedModel(Rows(model), opens, member, separate, probe, recorded if probe is None else None)
        mode.follows_from = follows_from
        with torch.enable_grad(), without_autocast(), without_gradients(model), networks_as_operations(model):
            with steps_as_operations(model, forms), mode.running.noted(model, networks, forms):
                whole = call(mode)
                if not mode.strands:
                    raise UsageError("the model called its recurrent network 0 times; expected a call or more")
                first = [strand for strand in mode.strands if strand.before is None and strand.direction == 0]
                batches = [len(strand.lengths) for strand in mode.strands]
                count = sum(strand.sequences_of_chain for strand in first)
                batch = count_examples(plain, wanted.target, batches, count)
                choice = replace(wanted, every=False).choose(plain, batch)
                select, names = choice.targets[0], list(choice.names)
                with mode:
                    output = select_target(whole, select, batch)
            probability = is_sigmoid(output, mode.gates)
        expected = select_target(plain, select, batch).detach()
        return _HeldRun(output, expected, select, names, mode.strands, mode.rows.rows, mode, probability)

    separate: frozenset[str] = frozenset()
    with runs.named_draws():
        found = held(None, separate)
        select = partial(select_target, target=found.select, batch=len(found.expected))
        while unfit := unfit_stacks(found.strands):
            separate |= unfit
            found = held(None, separate)
    try:
        drawn = runs.second(found.expected, select) if runs.draws else ()
        (opened, follows_from), of_target = follow_if_held_only(
            lambda first: found if first is None else held(None, separate, first),
            lambda run: (_collect(run, lambda probe: held(probe, separate), longest), run.mode.follows_from),
        )
    except ParityError:
        with runs.named_draws():
            runs.second(found.expected, select)  # two runs that differ are refused by name
            raise
    opened = replace(
        opened,
        is_sigmoid=found.is_sigmoid,
        notes=(*drawn, *sigmoid_note(found.is_sigmoid), *of_target, *opened.notes),
        deterministic=not (drawn or (runs.seeded and runs.draws)),
    )

    def of_numbers() -> tuple[tuple[Numbers | None, ...], ...]:
        again = held(
            None,
            separate,
            follows_from,
            lambda mode: call_with_sources(mode, model, asked.args, asked.kwargs),
        )
        owners = {line.line.first.call: line.owners for line in opened.lines}
        with without_autocast(), without_gradients(model):
            by_line = numbers_of_lines(
                again.mode, again.output, [owners.get(line.first.call) for line in find_lines(again.strands)]
            )
        return tuple(map(tuple, by_line))

    try:
        if not has_numbers((asked.args, asked.kwargs)):
            raise NoNumbersError(ONLY_TOKENS)
        return replace(opened, numbers=of_numbers())
    except (UnrolledError, RuntimeError) as error:
        return replace(opened, no_numbers=not_followed(error))


@dataclass(frozen=True)
class _HeldRun:
    output: Tensor
    """The target of each example, with its graph, shape (batch,)."""
    expected: Tensor
    """What the model itself gives."""
    select: Target
    names: list[str]
    strands: list[Strand]
    rows: list[Row]
    mode: RecordedModel
    is_sigmoid: bool
    """Whether the target is the result of a sigmoid."""

    def owners(self) -> list[Tensor]:
        """Find the example that reads each sequence of each line."""
        lines, batch = find_lines(self.strands), len(self.expected)
        linear = LinearOutput(self.output, [strand.states for strand in self.strands], keeps=True)
        plain, weighed = find_covectors(self.strands, linear.gradients), None
        if batch > 1:
            numbers = torch.arange(1, batch + 1, device=self.output.device).to(self.output)
            weighed = find_covectors(self.strands, linear.differentiate((numbers * self.output).sum()))
        return [find_owners(line, plain, weighed, batch) for line in lines]


def _collect(
    run: _HeldRun, again: Callable[[Callable[[Tensor], Tensor]], _HeldRun], longest: int | None
) -> OpenedCalls:
    """Find how the output reads every strand, and score the n-grams of the lines that they make."""
    output, expected, strands, rows = run.output, run.expected, run.strands, run.rows
    for recorded in (output, *(s.inputs for s in strands), *(s.start for s in strands)):
        check_linear(recorded, NODES)
    leaves = [*(strand.states for strand in strands), *(row.leaf for row in rows)]
    linear = LinearOutput(output, leaves, keeps=True)
    direct = linear.gradients[: len(strands)]
    if all(gradient is None for gradient in direct):
        raise HeldOnlyError("the target depends on the states by held results only, if at all")
    parts = linear.split()
    check_sum(output, expected, parts)
    batch, lines, unlimited = len(expected), find_lines(strands), longest
    if longest is None:
        limits = (default_longest(len(line.inside), 4 if line.both else 2) for line in lines if not line.coupled)
        unlimited = min((limit for limit in limits if limit is not None), default=None)
    found = find_covectors(strands, direct, whole=unlimited is not None)
    owners = dict(zip(lines, run.owners(), strict=True))
    if len(lines) == 1 and len(owners[lines[0]]) == batch:
        owners = {lines[0]: complete_owners(owners[lines[0]], _probed(again))}
    elif batch == 1 and all(bool((each < 0).all()) for each in owners.values()):  # a flat relu
        owners = {line: torch.zeros_like(each) for line, each in owners.items()}
    biases: dict[str, Tensor] = {}
    for row, part in zip(rows, parts[len(strands) :], strict=True):
        if part is not None:
            _add(biases, row.name, part.detach(), torch.arange(batch, device="cpu"), batch)
    opened = []
    for line in lines:
        if bool((owners[line] < 0).all()):
            continue
        initial = torch.zeros(len(owners[line]), dtype=torch.float64, device="cpu")
        for strand in line.strands:
            if strand in found.starts:
                at = strand.rows
                start = own_start(strand, strands, [row.leaf for row in rows])
                initial.index_add_(0, at, (found.starts[strand] * start).sum(dim=-1).double().cpu())
                _add_starts(biases, strand, found.starts[strand], rows, owners[line][at], batch)
        limit = DEEP_ORDER if longest is None and line.coupled else unlimited
        scores, contributions = line.score(found.weights, limit)
        limited = line.coupled or (limit is not None and limit < len(line.inside))
        tokens = line.by_token(found.entering) if limited else by_entered(contributions)
        off = torch.zeros_like(initial)
        for strand in line.strands:
            at = strand.rows
            off[at] = torch.maximum(off[at], residual(strand).cpu())
        opened.append(OpenedLine(line, owners[line], scores, contributions, tokens, initial, off, limit))
    failures = tuple(s.sequence.failure for s in strands if s.sequence.failure is not None)
    used = {name: part for name, part in biases.items() if bool(part.any())}
    logit = expected.double().cpu()
    held = {row.name for row in rows if row.kind == "held" and row.name in used}
    notes = held_notes(used, held, logit - sum(used.values(), torch.zeros_like(logit)))
    return OpenedCalls(tuple(opened), logit, tuple(run.names), used, failures, expected.dtype, notes=notes)


def _probed(again: Callable[[Callable[[Tensor], Tensor]], _HeldRun]) -> Iterator[Tensor]:
    """Run with other states where no gradient tells which example reads which sequence, as behind a flat relu."""
    generator = torch.Generator().manual_seed(0)

    def random(states: Tensor) -> Tensor:
        drawn = torch.randn(states.shape, generator=generator, dtype=torch.float64, device="cpu")
        return drawn.to(states) * states.abs().amax()

    probes: list[Callable[[Tensor], Tensor]] = [partial(torch.mul, other=scale) for scale in SCALES]
    for probe in (*probes, *[random] * RANDOM_PROBES):
        yield again(probe).owners()[0]


def _add(biases: dict[str, Tensor], name: str, part: Tensor, owners: Tensor, batch: int) -> None:
    """Add what a row contributes by each of some sequences to the examples that own them."""
    whole = biases.setdefault(name, torch.zeros(batch, dtype=torch.float64, device="cpu"))
    whole.index_add_(0, owners.clamp_min(0), torch.where(owners >= 0, part.double().cpu(), 0.0))


def _add_starts(
    biases: dict[str, Tensor], strand: Strand, covector: Tensor, rows: Iterable[Row], owners: Tensor, batch: int
) -> None:
    """Add what rows contribute by a strand's initial state."""
    if not strand.start.requires_grad:
        return
    named = list(rows)
    linear = LinearOutput((covector * strand.start).sum(dim=-1), [row.leaf for row in named], keeps=True)
    for row, of_start in zip(named, linear.split(), strict=True):
        if of_start is not None:
            _add(biases, row.name, of_start.detach(), owners, batch)
