r"""Shapley interaction indices of the words of a text: what two words do together that neither does alone.

.. math:: I_{ij} = \sum_{S ⊆ N∖\{i,j\}} \frac{|S|! (n-|S|-2)!}{(n-1)!} (v(S ∪ ij) - v(S ∪ i) - v(S ∪ j) + v(S))

v(S) is the output for the text of which only the words S are kept. All 2ⁿ of these texts are run, so the index is
exact, and n has to be small.

Source:
    Grabisch and Roubens (1999), doi:10.1007/s001820050125.
"""

from __future__ import annotations

from math import factorial
from typing import cast

import torch
from torch import Tensor, nn

from unrolled.errors import ShapeError
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import Explained

__all__ = ["shapley_interactions", "subset_outputs", "without_words"]


def shapley_interactions(values: Tensor) -> Tensor:
    """Compute the indices of all pairs of n members from a function of their subsets.

    Args:
        values: Value of each subset, shape (..., 2ⁿ); member i is in subset number b where bit i of b is set.

    Returns:
        Shape (..., n, n), symmetric, zero on the diagonal.

    Raises:
        ShapeError: If the number of subsets is no power of two.

    Example:
        >>> import torch
        >>> shapley_interactions(torch.tensor([0.0, 1.0, 1.0, 5.0]))  # of both members 5, of one 1
        tensor([[0., 3.],
                [3., 0.]])
    """
    n = values.shape[-1].bit_length() - 1
    if values.shape[-1] != 2**n:
        raise ShapeError(f"there are values of {values.shape[-1]} subsets; expected a power of two")
    if n < 2:
        return values.new_zeros(*values.shape[:-1], n, n)
    present = _members(n).long()
    of_others = [factorial(s) * factorial(n - s - 2) / factorial(n - 1) for s in range(n - 1)]
    others = present.sum(dim=1)[:, None, None] - present[:, :, None] - present[:, None, :]
    signs = (2 * present - 1)[:, :, None] * (2 * present - 1)[:, None, :]
    pairs = ~torch.eye(n, dtype=torch.bool)
    weights = torch.tensor(of_others, dtype=values.dtype)[others.clamp(0, n - 2)] * signs * pairs
    return torch.einsum("...b,bij->...ij", values, weights)


def _members(n: int) -> Tensor:
    """Tell which of n members each subset has, shape (2ⁿ, n)."""
    return (torch.arange(2**n)[:, None] >> torch.arange(n)) & 1 == 1


@torch.no_grad()
def subset_outputs(explained: Explained, *, blank: bool) -> Tensor:
    """Run the texts, all of one length n, with every subset of their words; return the margins, (batch, 2ⁿ), float64.

    The other words are replaced by the blank token if ``blank``, else deleted.
    """
    n = explained.tokens.shape[1]
    present, found = _members(n), []
    for text in range(len(explained.tokens)):
        rows = torch.full((len(present),), text)
        copies = explained.copies(explained.tokens[rows], explained.lengths[rows], rows)
        if blank:
            found.append(copies.blanked(~present).margins().double())
        else:
            some = copies.copies(copies.tokens[1:], copies.lengths[1:], torch.arange(1, len(present)))
            nothing = without_words(explained)[text : text + 1]
            found.append(torch.cat((nothing, some.without(~present[1:]).margins().double())))
    return torch.stack(found)


def without_words(explained: Explained) -> Tensor:
    """Compute the margins of texts without any word, shape (batch,), float64: the state that the head reads is zero."""
    head = cast("nn.Linear", explained.model.head)
    states = head.weight.new_zeros(len(explained.tokens), head.in_features)
    return explained.target(head(states)).detach().double()
