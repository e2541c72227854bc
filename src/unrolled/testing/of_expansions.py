r"""The contract of an expansion, for the expansions of this package and for your own.

.. code-block:: python

    from unrolled.testing import check_expansion

    def test_my_expansion():
        check_expansion(MyExpansion())

It is run on an Elman network, a GRU and an LSTM of torch, of one layer and of two in both directions, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from unrolled.decomposition.decomposition import decompose
from unrolled.decomposition.result import Decomposition
from unrolled.expansions import resolve
from unrolled.expansions.base import TOLERANCE, Expansion

__all__ = ["check_expansion"]

_TIME, _BATCH, _INPUT, _HIDDEN = 6, 2, 3, 4
_SCALE = 3.0
"""Of the weights that torch draws, which are so small that a step is nearly linear."""
_BOUND = 10 * TOLERANCE
"""Error of a sum of n-grams, relative to the state, up to which it is the state."""


def check_expansion(expansion: str | Expansion, seed: int = 0) -> None:
    """Check what an expansion says of itself.

    Its n-grams are finite. They sum to the states if it is ``exact``, and miss those of a network if it is not. If it
    is ``local``, an n-gram stays what it is, bit for bit, when a token before it becomes another.

    Args:
        expansion: The expansion, or its name.
        seed: Seed of the networks and inputs; the global random state is not changed.

    Raises:
        AssertionError: If one of these does not hold; the message names the network.
        UsageError: If it is no expansion, does not say what it is, or gives no g with operators.

    Example:
        >>> from unrolled.expansions.operating import Operating
        >>> from unrolled.testing import check_expansion
        >>> check_expansion(Operating())
        >>> class Wrong(Operating):
        ...     name = "wrong"
        ...     local = True
        >>> check_expansion(Wrong())  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: wrong says it is local, but an n-gram of RNN(3, 4) changes by ... with a token before it
    """
    chosen = resolve(expansion)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        errors = [_check_on(rnn, chosen) for rnn in _networks()]
    if not chosen.exact and max(errors) <= _BOUND:
        raise AssertionError(
            f"{chosen} says it is not exact, but its n-grams sum to the states of every network; set exact = True"
        )


def _networks() -> Iterator[nn.RNNBase]:
    for options in ({}, {"num_layers": 2, "bidirectional": True}):
        for kind in (nn.RNN, nn.GRU, nn.LSTM):
            rnn = kind(_INPUT, _HIDDEN, dtype=torch.float64, **options)
            for weight in rnn.parameters():
                weight.mul_(_SCALE)
            yield rnn


def _check_on(rnn: nn.RNNBase, expansion: Expansion) -> float:
    """Check an expansion on one network; return by how much the n-grams miss its states."""
    x = torch.randn(_TIME, _BATCH, _INPUT, dtype=torch.float64)
    found = decompose(rnn, x, expansion=expansion, tolerance=TOLERANCE)
    error = _error(found)
    if not math.isfinite(error):
        raise AssertionError(f"{expansion} gives n-grams of {rnn} with NaN or infinity")
    if expansion.exact and error > _BOUND:
        raise AssertionError(
            f"{expansion} says it is exact, but its n-grams miss the states of {rnn} by {error:.3g} of their size"
        )
    if expansion.local and not rnn.bidirectional:  # backward, the tokens before are those that follow
        other = x.clone()
        other[0] += 1.0
        change = _inner(found) - _inner(decompose(rnn, other, expansion=expansion, tolerance=TOLERANCE))
        if not bool((change == 0).all()):
            raise AssertionError(
                f"{expansion} says it is local, but an n-gram of {rnn} changes by {float(change.abs().max()):.3g} "
                "with a token before it"
            )
    return error


def _error(found: Decomposition) -> float:
    states = found.states()
    missed = found.vectors().sum(dim=2) + found.initial() - states
    return float(torch.linalg.vector_norm(missed) / torch.linalg.vector_norm(states))


def _inner(found: Decomposition) -> Tensor:
    """Return the n-grams that do not hold the first token."""
    return found.vectors()[:, 1:, 1:]
