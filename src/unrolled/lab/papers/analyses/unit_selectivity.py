"""Which unit of a network tells a property of what it reads: correlation, and how well it ranks.

Source:
    Karpathy, Johnson and Fei-Fei (2015), arXiv:1506.02078, section 4.2, which finds such units by eye.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.decomposition.open_network import cells_of
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.models.language_model import LanguageModel

__all__ = ["area_under_curve", "correlations", "read_units"]


@torch.no_grad()
def read_units(model: LanguageModel, vocabulary: Vocabulary, text: str, columns: int) -> Tensor:
    """Read a text with all units in sight.

    Args:
        model: with one layer of torch.nn.
        vocabulary: its characters.
        text: as many characters as fill the columns.
        columns: how many stretches it is cut into, each read from an empty state on.

    Returns:
        [c; h] of an LSTM, h of another network, shape (time, columns, units).
    """
    assert isinstance(model.encoder, nn.RNNBase)
    ((cell,),) = cells_of(model.encoder, torch.float32)
    tokens = torch.tensor(vocabulary.encode(text)).view(columns, -1)
    return cell.unroll(model.embedding(tokens).transpose(0, 1))[1:]


def correlations(units: Tensor, facts: Tensor) -> Tensor:
    """Correlate every unit with a property; where this is 0 or 1, that is the point-biserial correlation.

    Args:
        units: shape (places, units).
        facts: the property at the same places, shape (places,).

    Returns:
        Pearson's correlation for each unit, shape (units,), float64; 0 where one of the two does not vary.

    Example:
        >>> correlations(torch.tensor([[1.0, 5.0], [2.0, 5.0]]), torch.tensor([1.0, 0.0])).tolist()
        [-1.0, 0.0]
    """
    facts = facts.double() - facts.double().mean()
    centred = units - units.double().mean(dim=0).to(units)
    length = facts.norm() * centred.double().norm(dim=0)
    return torch.where(length > 0, (facts.to(units) @ centred).double() / length, 0.0).clamp(-1.0, 1.0)


def area_under_curve(values: Tensor, truth: Tensor) -> float | None:
    r"""Compute how often a value from where the property holds is above one from where it does not.

    .. math:: \mathrm{AUC} = P(v^+ > v^-) + \tfrac12 P(v^+ = v^-)

    Args:
        values: shape (places,).
        truth: whether the property holds, shape (places,), bool.

    Returns:
        From 0 to 1; 1/2 for values that say nothing. None where the property holds everywhere or nowhere.

    Example:
        >>> area_under_curve(torch.tensor([0.1, 0.7, 0.7]), torch.tensor([False, True, False]))
        0.75
    """
    positive = int(truth.sum())
    negative = len(truth) - positive
    if not positive or not negative:
        return None
    _, which, counts = values.unique(return_inverse=True, return_counts=True)
    ranks = counts.cumsum(0) - (counts - 1) / 2  # from 1; equal values share their mean rank
    above = ranks.double()[which][truth].sum().item() - positive * (positive + 1) / 2
    return above / (positive * negative)
