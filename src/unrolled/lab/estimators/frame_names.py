"""Names from data frames: the columns of sequences name the numbers of a step, those of a table of rows the steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from unrolled.errors import UsageError

__all__ = ["check_columns", "learn_columns", "shown_names"]

_LEARNED = "feature_names_in_"  # scikit-learn's name; it is set for rows of a data frame by scikit-learn itself


def learn_columns(estimator: BaseEstimator, sequences: Iterable[Any] | None) -> None:
    """Keep the columns of sequences that are data frames, and forget those of an earlier training.

    Raises:
        UsageError: If two data frames have other columns, or the same ones in another order.
    """
    vars(estimator).pop(_LEARNED, None)
    if sequences is None:
        return
    names = _columns(sequences)
    if names is not None:
        setattr(estimator, _LEARNED, np.array(names, dtype=object))


def check_columns(estimator: BaseEstimator, examples: Iterable[Any], *, rows: bool) -> None:
    """Refuse data frames whose columns are not those of the training, in their order; numbers have no names.

    A row of a data frame is a series of pandas, whose index holds the columns.
    """
    known, found = getattr(estimator, _LEARNED, None), _columns(examples, "index" if rows else "columns")
    if known is not None and found is not None:
        _check_same(found, tuple(known), "an example", "the training")


def shown_names(estimator: BaseEstimator, *, rows: bool) -> dict[str, Any]:
    """Return what an explanation is told of names: columns are steps of rows, and numbers of a step of sequences."""
    known = getattr(estimator, _LEARNED, None)
    return {} if known is None else {"tokens" if rows else "features": list(known)}


def _columns(examples: Iterable[Any], axis: str = "columns") -> tuple[str, ...] | None:
    """Return the columns of data frames; None where an example has none, or a column has no name."""
    first: tuple[str, ...] | None = None
    for number, one in enumerate(examples, 1):
        found = getattr(one, axis, ())
        names = () if callable(found) else tuple(found)  # a list has a method index
        if not names or not all(isinstance(name, str) for name in names):
            return None
        first = names if first is None else first
        _check_same(names, first, f"sequence {number}", "sequence 1")
    return first


def _check_same(found: tuple[str, ...], known: tuple[str, ...], where: str, there: str) -> None:
    if found == known:
        return
    odd = next((name for name in found if name not in known), None)
    lacking = next((name for name in known if name not in found), None)
    if odd is not None:
        fault = f"{where} has a column {odd!r}, which {there} has not"
    elif lacking is not None:
        fault = f"{where} has no column {lacking!r}, which {there} has"
    else:
        fault = f"{where} has the columns of {there} in another order"
    raise UsageError(f"{fault}; give the same columns in the same order: {', '.join(known)}")
