"""The answers that a classifier learns: none of them missing, and each found again by its value."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import UsageError
from unrolled.lab.data.text_lists import shown_kind
from unrolled.lab.estimators.inputs import number_advice

__all__ = ["as_numbers", "class_place", "refuse_missing"]


def refuse_missing(y: Any) -> None:
    """Refuse a missing answer among others, which numpy would make the class ``"nan"``.

    Raises:
        UsageError: It names the place.
    """
    rows = y.tolist() if getattr(getattr(y, "dtype", None), "kind", "O") == "O" and hasattr(y, "tolist") else y
    for place, each in enumerate(rows if isinstance(rows, list | tuple) else ()):
        if each is None or type(each).__name__ == "NAType" or (isinstance(each, float) and np.isnan(each)):
            raise UsageError(
                f"y[{place}] is {shown_kind(each)}; expected an answer for each example: leave out examples without "
                "one (in pandas, dropna)"
            )


def as_numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the answers of a regression, all of them finite numbers.

    Raises:
        UsageError: If there is a date, which numpy would count in nanoseconds, or a word.
        ValueError: If there is NaN or infinity.
    """
    odd = next((each for each in y.tolist() if isinstance(each, date)), None)
    if y.dtype.kind in "mM" or odd is not None:
        raise UsageError(
            f"y holds {str(y[0] if odd is None else odd)!r}, a time; expected numbers, such as hours since the first"
        )
    try:
        found = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        words = [each for each in y.tolist() if isinstance(each, str)]
        if not words:
            raise
        raise UsageError(f"y holds {words[0][:40]!r}; expected numbers: {number_advice(words[0])}") from None
    if not np.isfinite(found).all():
        raise ValueError("Input y contains NaN or infinity; expected finite numbers")
    return found


def class_place(classes: NDArray[Any], given: object) -> int:
    """Return the index of the output for a class.

    Raises:
        UsageError: If the training had no such class.
    """
    found = np.flatnonzero(classes == given)
    if not len(found):
        raise UsageError(f"unknown class {given!r}; expected one of: {', '.join(map(str, classes))}")
    return int(found[0])
