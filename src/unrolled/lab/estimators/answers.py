"""The answers that a classifier learns: none of them missing, and each found again by its value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from unrolled.errors import UsageError, kind_of
from unrolled.lab.data.text_lists import shown_kind
from unrolled.lab.estimators.inputs import number_advice, out_of_libraries

__all__ = ["as_numbers", "class_place", "learn_classes", "listed_answers", "refuse_mixed", "refuse_swapped"]


def listed_answers(y: Any) -> Any:
    """Return answers without a missing one as what scikit-learn reads as it is.

    Raises:
        UsageError: If ``y`` is no list or array of answers, or if an example has no answer or several.
    """
    if isinstance(y, str | Mapping | Set) or not (isinstance(y, Sequence) or hasattr(y, "__array__")):
        way = ": list() makes one of it" if isinstance(y, Iterator) else ""
        raise UsageError(f"y is {kind_of(y)}; expected a list or an array of one answer for each example{way}")
    y = out_of_libraries(y)
    if hasattr(y, "__array__") and not hasattr(y, "tolist"):  # a series of polars, whose dtype numpy does not know
        y = np.asarray(y)
    if getattr(getattr(y, "dtype", None), "kind", "") == "T":  # strings of any length, which scikit-learn does not know
        y = y.astype(object)
    _refuse_several(y)
    _refuse_missing(y)
    # scikit-learn makes floating-point numbers of pandas' own truth values and integers
    return np.array(y.tolist()) if _of_pandas(y) and y.dtype.kind in "biuf" else y


def _refuse_several(y: Any) -> None:
    """Refuse several answers for each example, which scikit-learn refuses without a way round."""
    if isinstance(y, list | tuple):
        y = np.array(y[:1], dtype=object)  # of the first example
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise UsageError(
            f"y has {shape[1]} answers for each example; expected one: fit an estimator for each column, as "
            "MultiOutputRegressor and MultiOutputClassifier of sklearn.multioutput do"
        )


def _refuse_missing(y: Any) -> None:
    """Refuse a missing answer among others, which numpy would make the class ``"nan"``."""
    for place, each in enumerate(_objects(y)):
        if _is_missing(each):
            raise UsageError(
                f"y[{place}] is {shown_kind(each)}; expected an answer for each example: leave out examples without "
                "one (in pandas, dropna)"
            )


def refuse_mixed(y: Any) -> None:
    """Refuse strings among other answers, of which numpy would make strings: 1 and ``"1"`` would be one class.

    Raises:
        UsageError: It names the first of both.
    """
    objects = _objects(y)
    words = [each for each in objects if isinstance(each, str)]
    others = [each for each in objects if not isinstance(each, str) and not _is_missing(each)]
    if words and others:
        raise UsageError(f"y holds strings and others, {words[0]!r} and {others[0]!r}; expected answers of one type")


def refuse_swapped(texts: Sequence[str], y: NDArray[Any]) -> None:
    """Refuse texts in the place of their classes: few different examples with many different, longer classes.

    Raises:
        UsageError: It names the first text and its class.
    """
    different, classes = len(set(texts)), set(y.tolist())
    if len(classes) < max(2 * different, len(y) / 2) or not all(isinstance(each, str) for each in classes):
        return
    if sum(map(len, y)) > sum(map(len, texts)):  # a class is shorter than its text
        raise UsageError(
            f"y holds {len(classes)} different classes of {different} different texts, the first {str(y[0])[:40]!r} of "
            f"{texts[0][:40]!r}; expected the texts first and their classes second"
        )


def _is_missing(answer: object) -> bool:
    return answer is None or type(answer).__name__ == "NAType" or (isinstance(answer, float) and np.isnan(answer))


def _objects(y: Any) -> Sequence[Any]:
    """Return the answers of a list or of an array in which one may be missing or of another type."""
    if getattr(y, "shape", ())[1:] == (1,):  # a table of one column
        y = np.ravel(out_of_libraries(y))
    holds = getattr(getattr(y, "dtype", None), "kind", "O") in "Of" or _of_pandas(y)
    rows = y.tolist() if holds and hasattr(y, "tolist") else y
    return rows if isinstance(rows, list | tuple) else ()


def _of_pandas(y: Any) -> bool:
    """Tell whether answers have one of the types that pandas adds to numpy's, with a value for what is missing."""
    return hasattr(y, "dtype") and not isinstance(y.dtype, np.dtype) and hasattr(y, "tolist")


def learn_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes in their order, and the index of each answer.

    Raises:
        ValueError: If the answers are numbers that are no classes.
        UsageError: If all answers are one class.
    """
    check_classification_targets(y)
    classes, indices = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise UsageError(f"y holds one class, {classes.tolist()[0]!r}; expected at least two")
    return classes, indices


def as_numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the answers of a regression, all of them finite numbers.

    Raises:
        UsageError: If there is a date, which numpy would count in nanoseconds, or a word.
        ValueError: If there is NaN or infinity, or a number too large to be standardised.
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
    with np.errstate(over="ignore", invalid="ignore"):
        spread = found.std()
    if not np.isfinite(spread):  # every prediction would be NaN
        raise ValueError(
            f"y has numbers up to {np.abs(found).max():g}, whose squares exceed floating-point numbers: divide them"
        )
    return found


def class_place(classes: NDArray[Any], given: object) -> int:
    """Return the index of the output for a class.

    Raises:
        UsageError: If the training had no such class.
    """
    one = isinstance(given, str) or not isinstance(given, Sequence | np.ndarray)
    found = np.flatnonzero(classes == given) if one else np.array([], dtype=np.int64)
    if not len(found):
        raise UsageError(f"unknown class {repr(given)[:40]}; expected one of: {', '.join(map(repr, classes.tolist()))}")
    return int(found[0])
