"""The main job in one call."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unrolled.errors import ShapeError
from unrolled.expansions import resolve
from unrolled.explanations.explanation import Explanation
from unrolled.explanations.find import find_recurrent
from unrolled.explanations.observe import evaluating, observe
from unrolled.explanations.readout import Target, readout
from unrolled.ngrams.account import Ledger, Triangle
from unrolled.ngrams.sequence import expand
from unrolled.ngrams.triangle import read
from unrolled.recurrence.expansion import Expansion

__all__ = ["explain"]

TOLERANCE = 1e-6

Tokens = Sequence[str] | Sequence[Sequence[str]] | None


def _labels(
    tokens: Tokens, lengths: list[int], time: int, args: tuple[object, ...], kwargs: dict[str, object]
) -> list[tuple[str, ...]]:
    """Name every position of every example: as given, else by token ids found among the arguments, else by number."""
    if tokens is not None:
        one = len(tokens) == 0 or isinstance(tokens[0], str)
        rows = [list(map(str, tokens))] if one else [list(map(str, row)) for row in tokens]
        if len(rows) != len(lengths):
            raise ShapeError(f"tokens for {len(rows)} examples came; expected {len(lengths)}")
        named = []
        for row, length in zip(rows, lengths, strict=True):
            if len(row) > length:
                raise ShapeError(f"{len(row)} tokens came for a sequence of {length}; expected at most {length}")
            # positions without a name were read all the same: padding that the model did not mask
            named.append((*row, *["‹pad›"] * (length - len(row))))
        return named
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor) and not value.is_floating_point() and value.dtype != torch.bool:
            ids = value[None] if value.dim() == 1 else value
            if ids.shape == (len(lengths), time):
                return [tuple(map(str, row[:n])) for row, n in zip(ids.tolist(), lengths, strict=True)]
            if ids.shape == (time, len(lengths)):
                return [tuple(map(str, row[:n])) for row, n in zip(ids.T.tolist(), lengths, strict=True)]
    return [tuple(f"x{t + 1}" for t in range(n)) for n in lengths]


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
    r"""Account for one logit of any model that has a recurrent network in it.

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
    chosen = resolve(expansion)
    _, network = find_recurrent(model, rnn)
    with evaluating(model):
        observation = observe(model, network, args, kwargs)
        found = readout(observation, target)
    opened = observation.opened
    with torch.no_grad():
        sequences = tuple(
            tuple(expand(layers, member, TOLERANCE) for member in chosen.members()) for layers in opened.directions
        )
        reading = read(opened, sequences, found.weights)
    lengths = opened.lengths[found.order].tolist()
    labels = _labels(tokens, lengths, opened.outputs[0].shape[0], args, kwargs)
    name = getattr(target, "__name__", "target") if callable(target) else f"output {target}"
    explanations = []
    for b, (words, row) in enumerate(zip(labels, found.order.tolist(), strict=True)):
        n = len(words)
        triangle = Triangle(reading.scores[row, :, :n, :n], reading.contributions[row, :, :n, :n])
        logit, bias = float(found.logit[b]), float(found.bias[b])
        ngrams, initial = float(triangle.contributions.sum()), float(reading.initial[row])
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
                residual=float(reading.residual[row]),
                parity=opened.parity,
                scope=opened.scope,
                notes=found.notes,
            )
        )
    return explanations[0] if len(explanations) == 1 else explanations
