"""The main job in one call."""

from __future__ import annotations

import torch
from torch import nn

from unrolled.decomposition.affine_sequence import expand_layers
from unrolled.decomposition.attribution import Ledger, Triangle
from unrolled.decomposition.score_ngrams import score_ngrams
from unrolled.errors import UsageError
from unrolled.expansions import resolve
from unrolled.expansions.base import Expansion
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.find_network import find_network
from unrolled.explanation.preserve_model import borrowed
from unrolled.explanation.readout import Target, readout
from unrolled.explanation.record_forward import observe
from unrolled.explanation.token_names import Tokens, label

__all__ = ["explain"]

TOLERANCE = 1e-6
NOTED = 1e-3  # a residual of an exact expansion that is no rounding of its sum any more


def _notes(expansion: Expansion, residual: float) -> tuple[str, ...]:
    """Say where an exact account is none."""
    if not expansion.exact or residual <= NOTED:
        return ()
    return (
        f"the terms add up to the states but for {residual:.1g} of their size: terms far larger than their sum cancel, "
        "and what is left is rounding; float64 has more digits (model.double())",
    )


@torch.inference_mode(mode=False)  # it differentiates, whoever calls it
def explain(
    model: nn.Module,
    *args: object,
    target: Target = 0,
    tokens: Tokens = None,
    expansion: str | Expansion = "path",
    rnn: str | nn.Module | None = None,
    **kwargs: object,
) -> Explanation | list[Explanation]:
    r"""Attribution for one logit of any model that has a recurrent network in it.

    .. math:: F(H) = \sum_t \sum_i w_t^\top v_{i:t} + \text{initial state} + F(0) + \text{remainder}

    The model is run as it is: its embedding, pooling and head are whatever its author wrote. Its recurrent network's
    inputs and states are observed, the states rewritten as n-gram terms, and the readout of the target averaged along
    the ray from zero to the states, so that the account is exact. No backward pass goes through the network, so it
    works in evaluation mode on a GPU as well, and under ``torch.no_grad()``. A model may sort its batch by length and
    put its answers back: each is read from its own sequence. The model is left as it was.

    Args:
        model: any module; its own output must hold the target.
        *args: what one would call it with.
        target: an index of the last dimension of its output, or a callable that picks one number an example from it.
        tokens: the words of the sentence, or of each sentence of a batch, for display.
        expansion: how the states are rewritten; see :func:`unrolled.decompose`.
        rnn: the recurrent network's path inside the model, or the module; needed when there are several.
        **kwargs: further arguments of the model.

    Returns:
        The explanation; for a batch of several examples, a list of them.

    Raises:
        UsageError: when there is no recurrent network, or several and none named; when the target is out of
            range, or no gradient flows from it to the states; when examples depend on one another.
        UnknownNameError: when there is no such expansion, or no network of that path.
        ShapeError: when the output, the target or the tokens do not fit.
        ParityError: when our states differ from the network's by more than rounding.
        NonFiniteError: when weights, inputs or the logit are NaN or infinite.
    """
    if not isinstance(model, nn.Module):
        raise UsageError(f"the model is a {type(model).__name__}; expected a torch.nn.Module")
    chosen = resolve(expansion)
    _, network = find_network(model, rnn)
    with borrowed(model):
        observation = observe(model, network, args, kwargs)
        found = readout(observation, target)
        opened = observation.opened
        with torch.no_grad():
            sequences = tuple(
                tuple(expand_layers(layers, member, TOLERANCE) for member in chosen.members())
                for layers in opened.directions
            )
            ngram_scores = score_ngrams(opened, sequences, found.weights)
    lengths, time = opened.lengths[found.order].tolist(), opened.outputs[0].shape[0]
    labels = label(tokens, lengths, time, (*args, *kwargs.values()), network.batch_first)
    name = f"output {target}"
    if callable(target):
        given = getattr(target, "__name__", "")
        name = given if given.isidentifier() else "the target"  # a lambda has no name worth a headline
    explanations = []
    for b, (words, row) in enumerate(zip(labels, found.order.tolist(), strict=True)):
        n = len(words)
        triangle = Triangle(ngram_scores.scores[row, :, :n, :n], ngram_scores.contributions[row, :, :n, :n])
        logit, bias = float(found.logit[b]), float(found.bias[b])
        residual = float(ngram_scores.residual[row])
        ngrams, initial = float(triangle.contributions.sum()), float(ngram_scores.initial[row])
        explanations.append(
            Explanation(
                tokens=words,
                directions=("forward", "backward")[: len(sequences)],
                triangle=triangle,
                ledger=Ledger(ngrams, initial, bias, logit - ngrams - initial - bias, logit),
                target=name,
                expansion=str(chosen),
                exact=chosen.exact,
                local=chosen.local,
                residual=residual,
                parity=opened.parity,
                scope=opened.scope,
                notes=(*found.notes, *_notes(chosen, residual)),
            )
        )
    return explanations[0] if len(explanations) == 1 else explanations
