"""The functions :func:`unrolled.explain` and :func:`unrolled.explain_batch`."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from unrolled.decomposition.affine_sequence import expand_layers
from unrolled.decomposition.arguments import checked_order
from unrolled.decomposition.attribution import Ledger, Triangle
from unrolled.decomposition.bidirectional_stack import expand_stack
from unrolled.decomposition.open_network import OpenedNetwork
from unrolled.decomposition.score_ngrams import NGramScores, score_ngrams
from unrolled.decomposition.score_spans import score_spans
from unrolled.errors import (
    NonFiniteError,
    RandomOperationError,
    UnknownNameError,
    UnsupportedOperationError,
    UsageError,
)
from unrolled.expansions import resolve
from unrolled.expansions.base import Expansion
from unrolled.explanation.determinism import TwoRuns
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.explanations import Explanations
from unrolled.explanation.find_network import find_network
from unrolled.explanation.held_readout import held_readout
from unrolled.explanation.notes import NOTED_RESIDUAL, explanation_notes, measured_growth
from unrolled.explanation.preserve_model import preserved
from unrolled.explanation.readout import Readout, Target, class_outputs, ray_readout, select_target
from unrolled.explanation.record_forward import RecordedForward, record_forward
from unrolled.explanation.thread_count import one_thread_if_small
from unrolled.explanation.token_names import Tokens, token_names
from unrolled.explanation.trace_tokens import trace_tokens

__all__ = ["explain", "explain_batch"]

TOLERANCE = 1e-6
DEEP_ORDER = 16  # of the n-grams of a deep bidirectional network, which cost a factor of the length more


def explain(
    model: nn.Module,
    *args: object,
    target: Target | None = None,
    tokens: Tokens = None,
    expansion: str | Expansion = "secant",
    readout: Literal["held", "ray"] = "held",
    rnn: str | nn.Module | None = None,
    max_order: int | None = None,
    seed: int | None = None,
    **kwargs: object,
) -> Explanation:
    r"""Explain one logit of any model that contains a recurrent network, for one example.

    .. math:: F(H) = \sum_t \sum_i w_t^\top v_{i:t} + \text{initial state} + \text{bias} + \text{remainder}

    The model is run as it is, whatever its embedding, pooling and head are. The states H of its recurrent network are
    decomposed into n-gram terms v. The model around it runs once more with the factors of its operations held, so that
    the target is linear in H: that gives w, and the bias is what the model's own biases and constants add. The model
    is run in evaluation mode and left as it was. No backward pass goes through the recurrent network, so this also
    works under ``torch.no_grad()`` and with cuDNN in evaluation mode. For several examples at once there is
    :func:`unrolled.explain_batch`.

    Args:
        model: Any module that calls one recurrent network exactly once: a ``torch.nn.RNN``, ``GRU`` or ``LSTM``, or a
            network of :func:`unrolled.cells.recurrent`.
        *args: The model's own positional arguments, for a batch of one example.
        target: An index of the last dimension of an output of shape (batch, classes), None for the predicted class, or
            a function from the model's output to one number for each example: ``lambda out: out[:, 3, 7]``.
        tokens: The words of the sentence, for display only.
        expansion: How the states are decomposed; see :func:`unrolled.decompose`.
        readout: ``"held"``, or ``"ray"``: w is then the gradient averaged along the line from 0 to H, and the bias is
            F(0). Where an operation behind the network has no rule, the ray is taken, and a note says so.
        rnn: The recurrent network's path inside the model (``"encoder.rnn"``), or the module; needed if there are
            several.
        max_order: Length of the longest n-gram to tell apart. None tells all apart, and in a bidirectional network of
            several layers, where that takes the cube of the text's length, those of up to 16 tokens. The contributions
            by token and the ledger count all.
        seed: Of a model that draws random numbers, the draw to explain: every run starts all generators from this
            seed. Without it such a model is refused.
        **kwargs: The model's own keyword arguments.

    Raises:
        UsageError: If the batch holds several examples; if there is no recurrent network, or several and ``rnn`` names
            none; if the target is out of range or no gradient flows from it to the states.
        UnknownNameError: If there is no such expansion or readout, or no recurrent network at the path ``rnn``.
        ShapeError: If the output, the target or the tokens do not fit.
        ParityError: If the recomputed states differ from the network's own by more than rounding.
        NonFiniteError: If weights, inputs or the logit are NaN or infinite.
        RandomOperationError: If two runs of the model give different answers; the message names what draws.

    Example:
        >>> import torch, unrolled
        >>> class Classifier(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embed, self.rnn = torch.nn.Embedding(9, 4), torch.nn.LSTM(4, 6, batch_first=True)
        ...         self.head = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        ...     def forward(self, tokens):
        ...         return self.head(self.rnn(self.embed(tokens))[0].mean(dim=1))
        >>> found = unrolled.explain(Classifier(), torch.tensor([[1, 2, 3]]), target=1, tokens=["not", "a", "bore"])
        >>> sorted(found.ledger)
        ['bias', 'initial', 'logit', 'ngrams', 'remainder']
        >>> abs(found.ledger.remainder) < 1e-5
        True

    Source:
        Decomposition: see :func:`unrolled.decompose`. Held readout: ours. Averaged gradients: Sundararajan et al. 2017
        (arXiv:1703.01365), there taken over the inputs.
    """
    found = _explanations(model, args, kwargs, target, tokens, expansion, readout, rnn, max_order, seed, several=False)
    return found[0]


def explain_batch(
    model: nn.Module,
    *args: object,
    target: Target | None = None,
    tokens: Tokens = None,
    expansion: str | Expansion = "secant",
    readout: Literal["held", "ray"] = "held",
    rnn: str | nn.Module | None = None,
    max_order: int | None = None,
    seed: int | None = None,
    **kwargs: object,
) -> Explanations:
    """Explain one logit of every example of a batch; otherwise as :func:`explain`.

    The model is called once with the whole batch, padded or packed. It may sort its batch by length and restore the
    order: every example gets its own n-grams.

    Args:
        model: As in :func:`explain`.
        *args: The model's own positional arguments, for a batch of any size.
        target: As in :func:`explain`; None is the predicted class of each example.
        tokens: The words of each sentence, without its padding, for display only.
        expansion: As in :func:`explain`.
        readout: As in :func:`explain`.
        rnn: As in :func:`explain`.
        max_order: As in :func:`explain`.
        seed: As in :func:`explain`.
        **kwargs: The model's own keyword arguments.

    Returns:
        One explanation for each example, in the order of the model's output.

    Raises:
        UsageError: As in :func:`explain`, or if one example's output depends on another example.
        UnknownNameError: As in :func:`explain`.
        ShapeError: As in :func:`explain`.
        ParityError: As in :func:`explain`.
        NonFiniteError: As in :func:`explain`.

    Example:
        >>> import torch, unrolled
        >>> class Classifier(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embed, self.rnn = torch.nn.Embedding(9, 4), torch.nn.GRU(4, 6, batch_first=True)
        ...         self.head = torch.nn.Linear(6, 3)
        ...     def forward(self, tokens):
        ...         return self.head(self.rnn(self.embed(tokens))[1][0])
        >>> found = unrolled.explain_batch(Classifier(), torch.tensor([[1, 2], [3, 4]]))
        >>> [len(each) for each in found]
        [2, 2]
    """
    return _explanations(model, args, kwargs, target, tokens, expansion, readout, rnn, max_order, seed, several=True)


@torch.inference_mode(mode=False)  # it needs gradients, also if its caller has switched them off
def _explanations(
    model: nn.Module,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    target: Target | None,
    tokens: Tokens,
    expansion: str | Expansion,
    readout: str,
    rnn: str | nn.Module | None,
    max_order: int | None,
    seed: int | None,
    several: bool,
) -> Explanations:
    """Explain every example; refuse more than one unless ``several``."""
    if not isinstance(model, nn.Module):
        raise UsageError(f"the model is a {type(model).__name__}; expected a torch.nn.Module")
    chosen = resolve(expansion)
    network, order = find_network(model, rnn), checked_order(max_order)
    if readout not in ("held", "ray"):
        raise UnknownNameError("readout", readout, ("held", "ray"))
    few = one_thread_if_small(model, (args, kwargs), passes=6.0)
    with preserved(model, seed) as generators, few:
        runs = TwoRuns(model, [network], args, kwargs, generators, seeded=seed is not None)
        with runs.first():
            recorded = record_forward(model, network, args, kwargs)
        opened = recorded.opened
        batch = opened.lengths.shape[0]
        if batch != 1 and not several:
            raise UsageError(f"the batch has {batch} examples; expected one: use unrolled.explain_batch")
        chosen_target, target_names = _choose(target, recorded.output, batch)
        select = partial(select_target, target=chosen_target, batch=batch)
        expected = select(recorded.output)
        drawn = runs.second(expected, select) if runs.draws or readout == "ray" else ()
        read = _read(recorded, chosen_target, readout, runs, expected)
        draws = bool(drawn) or (seed is not None and runs.draws)
        with torch.no_grad():
            found, failures = _score(opened, chosen, read, order)
        traces = trace_tokens(model, network, args, kwargs)
        growth = measured_growth(chosen, lambda other: _score(opened, other, read, order)[0], opened.layout.time)
    names, of_names = token_names(tokens, opened.lengths[read.order].tolist(), read.order.tolist(), traces)
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
    return Explanations(tuple(explanations))


def _choose(target: Target | None, output: object, batch: int) -> tuple[Target, list[str]]:
    """Return the target, and its name for each example; None becomes the predicted class of each."""
    if target is not None:
        return target, [_target_name(target)] * batch
    predicted = class_outputs(output, 0, batch).argmax(dim=1)
    names = [f"output {k}" for k in predicted.tolist()]
    if len(set(names)) == 1:
        return int(predicted[0]), names
    return lambda found: class_outputs(found, 0, batch).gather(1, predicted[:, None])[:, 0], names


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
        sequences = tuple(
            tuple(expand_layers(layers, each, TOLERANCE) for each in expansion.members())
            for layers in opened.directions
        )
        failures = [sequence.failure for members in sequences for sequence in members]
        found = score_ngrams(opened, sequences, read.weights, order)
    return found, dict.fromkeys(str(failure) for failure in failures if failure is not None)


def _target_name(target: Target) -> str:
    if not callable(target):
        return f"output {target}"
    name = getattr(target, "__name__", "")
    return name if name.isidentifier() else "the target"  # a lambda's name says nothing
