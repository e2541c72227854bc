"""What an estimator is given: texts, or sequences of numbers, as one list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_array
from torch import Tensor

from unrolled.errors import ShapeError, UsageError

__all__ = ["Padded", "is_text", "numeric_sequences", "padded"]


def is_text(X: Any) -> bool:
    """Tell whether the examples are texts: a list, array or series of strings."""
    if isinstance(X, str):
        raise UsageError(f"the examples are the string {X[:40]!r}; expected a list of texts: [{X[:40]!r}]")
    if getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__") or not len(X):
        return False
    first = X.iloc[0] if hasattr(X, "iloc") else X[0]
    return isinstance(first, str)


def numeric_sequences(X: Any, kind: Literal["rows", "sequences"]) -> list[NDArray[np.float64]]:
    """Return each example as an array of shape (time, features).

    Args:
        X: For ``"rows"`` a checked array of shape (examples, time): series of one feature. For ``"sequences"`` an array
            of shape (examples, time, features), or a list of arrays (time, features) of any lengths.
        kind: Which of the two.
    """
    if kind == "rows":
        return [np.asarray(row, dtype=np.float64)[:, None] for row in X]
    sequences = []
    for number, one in enumerate(X, 1):
        found = check_array(one, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name=f"sequence {number}")
        if found.ndim == 1:
            found = found[:, None]
        if found.ndim != 2 or 0 in found.shape:
            raise ShapeError(f"sequence {number} has shape {found.shape}; expected (time, features), neither of them 0")
        sequences.append(found)
    if not sequences:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    counts = {one.shape[1] for one in sequences}
    if len(counts) > 1:
        raise ShapeError(f"the sequences have {sorted(counts)} features; expected the same number in each")
    return sequences


@dataclass(frozen=True)
class Padded:
    """A batch of sequences."""

    values: Tensor
    """Shape (batch, time) of indices, or (batch, time, features)."""
    lengths: Tensor
    """Shape (batch,)."""


def padded(sequences: Sequence[NDArray[Any]], dtype: torch.dtype) -> Padded:
    """Pad sequences with zeros to the length of the longest."""
    lengths = torch.tensor([len(one) for one in sequences])
    values = torch.zeros(len(sequences), int(lengths.max()), *sequences[0].shape[1:], dtype=dtype)
    for row, one in zip(values, sequences, strict=True):
        row[: len(one)] = torch.tensor(one, dtype=dtype)
    return Padded(values, lengths)


def is_nested(X: Any) -> bool:
    """Tell whether the examples are sequences of steps, not rows of numbers."""
    if isinstance(X, np.ndarray | Tensor):
        return X.ndim == 3
    if isinstance(X, Sequence) and len(X):
        return getattr(X[0], "ndim", 0) == 2 or (
            isinstance(X[0], Sequence) and len(X[0]) > 0 and isinstance(X[0][0], Sequence | np.ndarray)
        )
    return False
