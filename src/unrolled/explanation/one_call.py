"""Explanations of one recurrent network that is called once, with one sequence for each example."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from unrolled.decomposition.attribution.bands import default_longest
from unrolled.decomposition.attribution.ledger import Ledger
from unrolled.decomposition.attribution.score_ngrams import NGramScores, score_each
from unrolled.decomposition.attribution.score_spans import DEEP_ORDER, score_spans
from unrolled.decomposition.opening.network_cells import Network
from unrolled.decomposition.opening.open_network import OpenedNetwork
from unrolled.decomposition.recurrences.affine_sequence import expand_directions
from unrolled.decomposition.recurrences.bidirectional_stack import expand_stack
from unrolled.decomposition.recurrences.sweep_progress import planned_steps
from unrolled.errors import NonFiniteError, ParityError, RandomOperationError, UnrolledError
from unrolled.expansions.base import TOLERANCE, Expansion
from unrolled.explanation.examples import count_examples
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.features import FeaturesFound
from unrolled.explanation.model_run import ModelRun
from unrolled.explanation.named_failures import named_failures
from unrolled.explanation.networks.own_forwards import has_own_forward
from unrolled.explanation.notes import failure_notes
from unrolled.explanation.readout.read_numbers import numbers_of_call
from unrolled.explanation.readout.read_targets import ReadTargets
from unrolled.explanation.readout.readout import Readout
from unrolled.explanation.readout.record_forward import NotOneCallError, RecordedForward, record_forward
from unrolled.explanation.request import Request
from unrolled.explanation.scored_sequence import ScoredSequence
from unrolled.explanation.targets.wanted import Choice
from unrolled.explanation.tokens.sequence_names import words_for_one_sequence
from unrolled.explanation.tokens.token_names import token_names
from unrolled.explanation.tokens.trace_tokens import trace_tokens
from unrolled.model_runs.determinism import TwoRuns
from unrolled.model_runs.random_generators import RandomGenerators

__all__ = ["explain_one_call"]


def explain_one_call(
    model: nn.Module, network: Network, asked: Request, generators: RandomGenerators
) -> list[Explanation]:
    """Explain every example of an output.

    Raises:
        NotOneCallError: If the network is not called once, or not with one sequence for each example.
    """
    run = ModelRun.of(model, asked.args, asked.kwargs)
    runs = TwoRuns(model, [network], run, generators, seeded=asked.seeded)
    try:
        with runs.first(), named_failures(model, run.arguments):
            recorded = record_forward(network, run)
    except ParityError as error:
        if has_own_forward(network):  # which may run torch's kernel inside
            raise NotOneCallError(str(error)) from error
        raise
    choice, reads, drawn = _readouts(recorded, asked, runs)
    deterministic = runs.drew_nothing(drawn)  # before a run that ends at the network, and draws no more
    with torch.no_grad():
        scored, failures = _score(recorded.opened, asked.expansion, reads, asked.max_order)
    words, of_words = _words(recorded, asked, reads[0].order)
    call = _OpenedCall(
        opened=recorded.opened,
        asked=asked,
        choice=choice,
        reads=reads,
        scored=scored,
        failures=failures,
        features=FeaturesFound.of(lambda: numbers_of_call(recorded, asked, reads), asked),
        deterministic=deterministic,
        notes=(*drawn, *of_words),
    )
    by_target = [[call.explanation(k, b, tokens) for b, tokens in enumerate(words)] for k in range(len(reads))]
    return [replace(one, exact=one.exact and one.closes) for one in choice.combine(by_target)]


def _readouts(
    recorded: RecordedForward, asked: Request, runs: TwoRuns
) -> tuple[Choice, list[Readout], tuple[str, ...]]:
    """Choose what is explained, and compute how it reads the states; return notes on random numbers as well."""
    batch = len(recorded.opened.lengths)
    if count_examples(recorded.output, asked.wanted.target, [batch], batch) != batch:
        raise NotOneCallError(f"the network reads {batch} sequences, and the output is not one number for each of them")
    asked.refuse_several(batch)

    def read(chosen: Choice) -> tuple[list[Readout], tuple[str, ...]]:
        targets = ReadTargets(recorded, chosen.targets, runs)
        return targets.by_rays() if asked.readout == "ray" else targets.by_held_run()

    choice = asked.wanted.choose(recorded.output, batch)
    try:
        reads, drawn = read(choice)
    except UnrolledError as error:
        if not choice.every or isinstance(error, RandomOperationError):
            raise
        choice = choice.alone()  # an output that nobody asked for cannot be explained
        reads, drawn = read(choice)
    return choice.of_sigmoids() if all(each.is_sigmoid for each in reads) else choice, reads, drawn


def _words(recorded: RecordedForward, asked: Request, order: Tensor) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Name the tokens of every example, with notes; ``order`` is the sequence that each example reads."""
    traces = trace_tokens(recorded.model, recorded.rnn, asked.args, asked.kwargs)
    lengths = recorded.opened.lengths[order].tolist()
    return token_names(words_for_one_sequence(asked.tokens), lengths, order.tolist(), traces)


@dataclass(frozen=True)
class _OpenedCall:
    """A call of a network whose n-grams are scored for every target and example."""

    opened: OpenedNetwork
    asked: Request
    choice: Choice
    reads: Sequence[Readout]
    """Of each target."""
    scored: Sequence[NGramScores]
    """Under each target."""
    failures: tuple[str, ...]
    """Why a quadrature is not to be trusted."""
    features: FeaturesFound
    deterministic: bool
    notes: tuple[str, ...]
    """Those of every explanation."""

    def explanation(self, k: int, b: int, words: tuple[str, ...]) -> Explanation:
        """Make the explanation of one target of one example, with its features and notes."""
        choice, opened, read, found = self.choice, self.opened, self.reads[k], self.scored[k]
        row, logit, bias = int(read.order[b]), float(read.logit[b]), float(read.bias[b])
        ngrams, initial = float(found.tokens[row].sum()), float(found.initial[row])
        if not math.isfinite(ngrams + initial):
            raise NonFiniteError.overflow("the n-grams", read.dtype == torch.float64, str(self.asked.expansion))
        sequence = ScoredSequence(
            ngrams=found,
            row=row,
            steps=torch.arange(len(words), device="cpu"),
            directions=len(opened.directions),
            coupled=opened.coupled,
            parity=opened.parity,
            dtype=read.dtype,
            failures=self.failures,
        )
        return sequence.explanation(
            self.asked,
            lambda plain: self.features.put(plain, k, b),
            tokens=words,
            ledger=Ledger(ngrams, initial, bias, logit - ngrams - initial - bias, logit),
            biases={name: float(part[b]) for name, part in read.biases.items()},
            target=choice.names[k if choice.every else b],
            unit=choice.unit_of(read.is_sigmoid),
            notes=(*read.notes, *self.notes),
            deterministic=self.deterministic,
        )


def _score(
    opened: OpenedNetwork, expansion: Expansion, reads: Sequence[Readout], order: int | None
) -> tuple[list[NGramScores], tuple[str, ...]]:
    """Expand the network and score its n-grams; return why a quadrature is not to be trusted as well."""
    if opened.coupled:
        stacks = [expand_stack(opened.directions, opened.layout, each, TOLERANCE) for each in expansion.members()]
        failures = [stack.failure for stack in stacks]
        longest = DEEP_ORDER if order is None else order
        found = score_spans(opened, stacks, [read.weights for read in reads], longest)
    else:
        sequences = expand_directions(opened.directions, expansion.members(), TOLERANCE)
        failures = [sequence.failure for members in sequences for sequence in members]
        bands = 2 * len(opened.directions) * len(reads)
        most = default_longest(opened.layout.time, bands) if order is None else order
        steps = opened.layout.time if most is None else min(most, opened.layout.time)
        with planned_steps(sum(map(len, sequences)) * steps):
            found = score_each(opened, sequences, [read.weights for read in reads], most)
    return found, failure_notes(failures)
