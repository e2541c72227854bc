"""Explanations of one recurrent network that is called once, with one sequence for each example."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from unrolled.decomposition.affine_sequence import AffineSequence, expand_layers
from unrolled.decomposition.attribution import Ledger, Triangle
from unrolled.decomposition.bidirectional_stack import expand_stack
from unrolled.decomposition.open_network import Network, OpenedNetwork
from unrolled.decomposition.score_ngrams import NGramScores, cancellation_where_read, score_ngrams
from unrolled.decomposition.score_spans import score_spans
from unrolled.errors import NonFiniteError, RandomOperationError, UnsupportedOperationError, UsageError
from unrolled.expansions.base import Expansion
from unrolled.explanation.determinism import TwoRuns
from unrolled.explanation.examples import count_examples
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.held_readout import held_readout
from unrolled.explanation.notes import NOTED_RESIDUAL, cancellations, explanation_notes, measured_growth
from unrolled.explanation.random_generators import RandomGenerators
from unrolled.explanation.readout import Readout, Target, ray_readout, select_target
from unrolled.explanation.record_forward import NotOneCallError, RecordedForward, record_forward
from unrolled.explanation.request import Request
from unrolled.explanation.sequence_names import of_one
from unrolled.explanation.target_choice import choose_target
from unrolled.explanation.token_names import token_names
from unrolled.explanation.trace_tokens import trace_tokens

__all__ = ["explain_one_call"]

TOLERANCE = 1e-6
DEEP_ORDER = 16  # of the n-grams of a deep bidirectional network, which cost a factor of the length more


def explain_one_call(
    model: nn.Module, network: Network, asked: Request, generators: RandomGenerators, seeded: bool
) -> list[Explanation]:
    """Explain every example of an output.

    Raises:
        NotOneCallError: If the network is not called once, or not with one sequence for each example.
    """
    chosen = asked.expansion
    runs = TwoRuns(model, [network], asked.args, asked.kwargs, generators, seeded=seeded)
    with runs.first():
        recorded = record_forward(model, network, asked.args, asked.kwargs)
    opened = recorded.opened
    batch = opened.lengths.shape[0]
    if count_examples(recorded.output, asked.target, [batch], batch) != batch:
        raise NotOneCallError(f"the network reads {batch} sequences, and the output is not one number for each of them")
    if batch != 1 and not asked.several:
        raise UsageError(f"the batch has {batch} examples; expected one: use unrolled.explain_batch")
    chosen_target, target_names = choose_target(asked.target, recorded.output, batch)
    select = partial(select_target, target=chosen_target, batch=batch)
    expected = select(recorded.output)
    drawn = runs.second(expected, select) if runs.draws or asked.readout == "ray" else ()
    read = _read(recorded, chosen_target, asked.readout, runs, expected)
    draws = bool(drawn) or (seeded and runs.draws)
    with torch.no_grad():
        found, failures = _score(opened, chosen, read, asked.max_order)
    traces = trace_tokens(model, network, asked.args, asked.kwargs)
    growth = measured_growth(chosen, lambda other: _cancel(opened, other, read, asked.max_order), opened.layout.time)
    order = read.order.tolist()
    names, of_names = token_names(of_one(asked.tokens), opened.lengths[read.order].tolist(), order, traces)
    explanations = []
    for b, (words, row) in enumerate(zip(names, read.order.tolist(), strict=True)):
        n = len(words)
        triangle = Triangle(found.scores[row, :, :n, :n], found.contributions[row, :, :n, :n])
        logit, bias = float(read.logit[b]), float(read.bias[b])
        residual = float(found.residual[row])
        ngrams, initial = float(found.tokens[row].sum()), float(found.initial[row])
        if not math.isfinite(ngrams + initial):
            raise NonFiniteError("the n-grams overflow; use float64 (model.double()) or the expansion operating")
        limited = found.longest is not None and found.longest < n
        explanation = Explanation(
            tokens=words,
            directions=("forward", "backward")[: len(opened.directions)],
            triangle=triangle,
            ledger=Ledger(ngrams, initial, bias, logit - ngrams - initial - bias, logit),
            target=target_names[b],
            expansion=str(chosen),
            exact=chosen.exact and not failures and residual <= NOTED_RESIDUAL,
            local=chosen.local,
            residual=residual,
            parity=opened.parity,
            biases={name: float(part[b]) for name, part in read.biases.items()},
            deterministic=not draws,
            rounding=torch.finfo(expected.dtype).eps,
            notes=(*read.notes, *drawn, *of_names),
            max_order=found.longest if limited else None,
            by_token=found.tokens[row, :n] if limited or opened.coupled else None,
        )
        notes = explanation_notes(explanation, chosen, failures, expected.dtype, growth, row)
        exact = explanation.exact and explanation.closes
        explanations.append(replace(explanation, exact=exact, notes=(*explanation.notes, *notes)))
    return explanations


def _read(recorded: RecordedForward, target: Target, kind: str, runs: TwoRuns, expected: Tensor) -> Readout:
    """Compute the readout; a ray where an operation behind the network has no rule."""
    select = partial(select_target, target=target, batch=len(expected))
    if kind == "ray":
        return ray_readout(recorded, target)
    try:
        with runs.replayed(expected, select):
            return held_readout(recorded, target)
    except RandomOperationError:
        raise
    except UnsupportedOperationError as error:
        runs.second(expected, select)
        found = ray_readout(recorded, target)
        note = f"the readout is a ray from states of zero, since a held run is not possible: {error}"
        return replace(found, notes=(*found.notes, note))


def _score(
    opened: OpenedNetwork, expansion: Expansion, read: Readout, order: int | None
) -> tuple[NGramScores, dict[str, None]]:
    """Expand the network and score its n-grams; return why a quadrature is not to be trusted as well."""
    if opened.coupled:
        stacks = [expand_stack(opened.directions, opened.layout, each, TOLERANCE) for each in expansion.members()]
        failures = [stack.failure for stack in stacks]
        found = score_spans(opened, stacks, read.weights, DEEP_ORDER if order is None else order)
    else:
        sequences = _sequences(opened, expansion)
        failures = [sequence.failure for members in sequences for sequence in members]
        found = score_ngrams(opened, sequences, read.weights, order)
    return found, dict.fromkeys(str(failure) for failure in failures if failure is not None)


def _sequences(opened: OpenedNetwork, expansion: Expansion) -> tuple[tuple[AffineSequence, ...], ...]:
    """Expand each direction by each member of an expansion."""
    return tuple(
        tuple(expand_layers(layers, each, TOLERANCE) for each in expansion.members()) for layers in opened.directions
    )


def _cancel(opened: OpenedNetwork, expansion: Expansion, read: Readout, order: int | None) -> Tensor:
    """Return the cancellation of each sequence by another expansion."""
    found = None
    if not opened.coupled and order is None:
        found = cancellation_where_read(opened, _sequences(opened, expansion), read.weights)
    return cancellations(_score(opened, expansion, read, order)[0]) if found is None else found
