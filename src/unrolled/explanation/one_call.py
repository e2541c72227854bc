"""Explanations of one recurrent network that is called once, with one sequence for each example."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor, nn

from unrolled.decomposition.affine_sequence import AffineSequence, expand_layers
from unrolled.decomposition.bands import default_longest
from unrolled.decomposition.bidirectional_stack import expand_stack
from unrolled.decomposition.determinism import TwoRuns
from unrolled.decomposition.ledger import Ledger
from unrolled.decomposition.network_cells import Network
from unrolled.decomposition.number_notes import NOTED_RESIDUAL
from unrolled.decomposition.open_network import OpenedNetwork
from unrolled.decomposition.random_generators import RandomGenerators
from unrolled.decomposition.score_ngrams import NGramScores, score_each
from unrolled.decomposition.score_spans import DEEP_ORDER, score_spans
from unrolled.decomposition.triangle import Triangle
from unrolled.errors import (
    NonFiniteError,
    RandomOperationError,
    UnrolledError,
    UnsupportedOperationError,
)
from unrolled.expansions.base import TOLERANCE, Expansion
from unrolled.explanation.choice import Choice
from unrolled.explanation.examples import count_examples
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.features import FeaturesFound
from unrolled.explanation.notes import convergence_notes, explanation_notes, limit_note
from unrolled.explanation.readout.held_readout import HeldReadouts
from unrolled.explanation.readout.ray_readout import ray_readout
from unrolled.explanation.readout.read_numbers import numbers_of_call
from unrolled.explanation.readout.readout import Readout
from unrolled.explanation.readout.record_forward import NotOneCallError, RecordedForward, record_forward
from unrolled.explanation.readout.run_model import named_failures, runner
from unrolled.explanation.request import Request
from unrolled.explanation.targets.select_target import Target, select_target
from unrolled.explanation.tokens.sequence_names import of_one
from unrolled.explanation.tokens.token_names import token_names
from unrolled.explanation.tokens.trace_tokens import trace_tokens

__all__ = ["explain_one_call"]


def explain_one_call(
    model: nn.Module, network: Network, asked: Request, generators: RandomGenerators, seeded: bool
) -> list[Explanation]:
    """Explain every example of an output.

    Raises:
        NotOneCallError: If the network is not called once, or not with one sequence for each example.
    """
    chosen = asked.expansion
    run = runner(model, asked.args, asked.kwargs)
    runs = TwoRuns(model, [network], run, generators, seeded=seeded)
    with runs.first(), named_failures(asked.arguments):
        recorded = record_forward(model, network, run)
    opened = recorded.opened
    batch = opened.lengths.shape[0]
    if count_examples(recorded.output, asked.wanted.target, [batch], batch) != batch:
        raise NotOneCallError(f"the network reads {batch} sequences, and the output is not one number for each of them")
    asked.refuse_several(batch)
    choice = asked.wanted.choose(recorded.output, batch)
    try:
        reads, drawn = _read_each(recorded, choice, asked.readout, runs)
    except UnrolledError as error:
        if not choice.every or isinstance(error, RandomOperationError):
            raise
        choice = choice.alone()  # an output that nobody asked for cannot be explained
        reads, drawn = _read_each(recorded, choice, asked.readout, runs)
    if all(read.is_sigmoid for read in reads):
        choice = choice.of_sigmoids()
    draws = bool(drawn) or (seeded and runs.draws)
    with torch.no_grad():
        scored, failures = _score(opened, chosen, reads, asked.max_order)
    traces = trace_tokens(model, network, asked.args, asked.kwargs)

    lengths, rows = opened.lengths[reads[0].order].tolist(), reads[0].order.tolist()
    names, of_names = token_names(of_one(asked.tokens), lengths, rows, traces)
    numbers = FeaturesFound.of(lambda: numbers_of_call(recorded, asked.args, asked.kwargs, chosen, reads), asked)
    by_target = []
    for k, (read, found) in enumerate(zip(reads, scored, strict=True)):
        labels = [choice.names[k]] * batch if choice.every else choice.names
        by_target.append(
            [
                _noted(
                    replace(
                        numbers.put(_explanation(opened, chosen, read, found, b, words, not failures), k, b),
                        target=labels[b],
                        unit="probability" if read.is_sigmoid and choice.unit == "logit" else choice.unit,
                        deterministic=not draws,
                        notes=(*read.notes, *drawn, *of_names, *numbers.notes(k, b)),
                    ),
                    chosen,
                    failures,
                    asked.max_order is None and not opened.coupled,
                )
                for b, words in enumerate(names)
            ]
        )
    return [replace(one, exact=one.exact and one.closes) for one in choice.combine(by_target)]


def _noted(one: Explanation, expansion: Expansion, failures: tuple[str, ...], unlimited: bool) -> Explanation:
    """Add what limits an explanation; a limit of its n-grams only if nobody asked for one."""
    limit = limit_note(one) if unlimited else ()
    return replace(one, notes=(*one.notes, *limit, *explanation_notes(one, expansion, failures)))


def _explanation(
    opened: OpenedNetwork,
    expansion: Expansion,
    read: Readout,
    found: NGramScores,
    b: int,
    words: tuple[str, ...],
    converged: bool,
) -> Explanation:
    """Make the explanation of one target of one example, without its name and notes."""
    n, row = len(words), int(read.order[b])
    triangle = Triangle(found.scores[row, :, :n, :n], found.contributions[row, :, :n, :n])
    logit, bias = float(read.logit[b]), float(read.bias[b])
    residual = float(found.residual[row])
    ngrams, initial = float(found.tokens[row].sum()), float(found.initial[row])
    if not math.isfinite(ngrams + initial):
        raise NonFiniteError("the n-grams overflow; use float64 (model.double()) or the expansion operating")
    limited = found.longest is not None and found.longest < n
    return Explanation(
        tokens=words,
        directions=("forward", "backward")[: len(opened.directions)],
        triangle=triangle,
        ledger=Ledger(ngrams, initial, bias, logit - ngrams - initial - bias, logit),
        target="",
        expansion=str(expansion),
        exact=expansion.exact and converged and residual <= NOTED_RESIDUAL,
        local=expansion.local,
        residual=residual,
        parity=opened.parity,
        biases={name: float(part[b]) for name, part in read.biases.items()},
        rounding=torch.finfo(read.logit.dtype).eps,
        max_order=found.longest if limited else None,
        by_token=found.tokens[row, :n] if limited or opened.coupled else None,
    )


def _read_each(
    recorded: RecordedForward, choice: Choice, kind: str, runs: TwoRuns
) -> tuple[list[Readout], tuple[str, ...]]:
    """Compute the readout of every target by one held run; return notes on random numbers as well."""
    batch = recorded.opened.lengths.shape[0]

    def select(output: object) -> Tensor:
        return torch.cat([select_target(output, target, batch) for target in choice.targets])

    expected = select(recorded.output)
    drawn = runs.second(expected, select) if runs.draws or kind == "ray" else ()
    if kind == "ray":
        try:
            return [ray_readout(recorded, target) for target in choice.targets], drawn
        except UnsupportedOperationError as jump:
            raise UnsupportedOperationError(f"{jump}, or readout='held' where it only weighs the states") from None
    compare = cache(lambda: runs.second(expected, select))

    def by_ray(target: Target, why: UnsupportedOperationError) -> Readout:
        compare()
        try:
            found = ray_readout(recorded, target)
        except RuntimeError as error:  # of the model, as one that differentiates inside its forward
            raise why from error
        note = f"the readout is a ray from states of zero, since a held run is not possible: {why}"
        return replace(found, notes=(*found.notes, note))

    try:
        with runs.replayed(expected, select):
            held = HeldReadouts(recorded, choice.targets)
    except RandomOperationError:
        raise
    except UnsupportedOperationError as error:
        return [by_ray(target, error) for target in choice.targets], drawn
    reads = []
    for place, target in enumerate(choice.targets):
        try:
            reads.append(held.readout(place))
        except UnsupportedOperationError as error:
            reads.append(by_ray(target, error))
    return reads, drawn


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
        sequences = _sequences(opened, expansion)
        failures = [sequence.failure for members in sequences for sequence in members]
        bands = 2 * len(opened.directions) * len(reads)
        found = score_each(
            opened,
            sequences,
            [read.weights for read in reads],
            default_longest(opened.layout.time, bands) if order is None else order,
        )
    return found, convergence_notes(failures)


def _sequences(opened: OpenedNetwork, expansion: Expansion) -> tuple[tuple[AffineSequence, ...], ...]:
    """Expand each direction by each member of an expansion."""
    return tuple(
        tuple(expand_layers(layers, each, TOLERANCE) for each in expansion.members()) for layers in opened.directions
    )
