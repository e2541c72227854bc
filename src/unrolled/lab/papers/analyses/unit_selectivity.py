"""The correlation of single units of a network with a property of the text.

Source:
    Karpathy, Johnson and Fei-Fei (2015), arXiv:1506.02078, section 4.2, which finds such units by eye.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor, nn

from unrolled.decomposition.opening.network_cells import build_cells
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.models.language_model import LanguageModel

__all__ = ["correlations", "unit_values"]


@torch.no_grad()
def unit_values(model: LanguageModel, vocabulary: Vocabulary, text: str, columns: int) -> Tensor:
    """Run a one-layer network over a text and give all units: [c; h] of an LSTM, h of another network.

    The text is cut into ``columns`` parts of equal length, each read from an empty state; the result has the shape
    (time, columns, units).
    """
    assert isinstance(model.encoder, nn.RNNBase)
    ((cell,),) = build_cells(model.encoder, torch.float32)
    tokens = torch.tensor(vocabulary.encode(text)).view(columns, -1)
    return cell.unroll(model.embedding(tokens).transpose(0, 1))[1:]


def correlations(units: Tensor, property_: Tensor) -> Tensor:
    """Compute Pearson's correlation of every unit with a property; 0 where one of the two is constant.

    ``units`` has the shape (places, units), ``property_`` (places,); the result (units,) is float64. For a property of
    0 and 1 it is the point-biserial correlation.

    Example:
        >>> correlations(torch.tensor([[1.0, 5.0], [2.0, 5.0]]), torch.tensor([1.0, 0.0])).tolist()
        [-1.0, 0.0]
    """
    from scipy.stats import DegenerateDataWarning, pearsonr

    target = property_.double().numpy()
    with warnings.catch_warnings(action="ignore", category=DegenerateDataWarning):  # of a constant unit
        found = [pearsonr(unit.double().numpy(), target).statistic for unit in units.T]
    return torch.from_numpy(np.nan_to_num(np.array(found, dtype=np.float64)))
