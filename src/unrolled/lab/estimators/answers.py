"""The answers that a classifier learns: none of them missing, and each found again by its value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import UsageError
from unrolled.lab.data.text_lists import shown_kind

__all__ = ["class_place", "refuse_missing"]


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


def class_place(classes: NDArray[Any], given: object) -> int:
    """Return the index of the output for a class.

    Raises:
        UsageError: If the training had no such class.
    """
    found = np.flatnonzero(classes == given)
    if not len(found):
        raise UsageError(f"unknown class {given!r}; expected one of: {', '.join(map(str, classes))}")
    return int(found[0])
