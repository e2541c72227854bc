"""What an estimator is given: texts, or sequences of numbers, as one list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from unrolled.errors import ShapeError, UsageError
from unrolled.lab.data.tables.values import may_have_thousands, number_hint
from unrolled.lab.data.text_lists import check_strings

__all__ = [
    "Padded",
    "check_container",
    "checked_rows",
    "is_nested",
    "is_text",
    "number_advice",
    "numeric_sequences",
    "out_of_libraries",
    "padded",
    "refuse_other_than_texts",
    "with_features",
]

_DATES = (date, timedelta, np.datetime64, np.timedelta64)

_GAP = "Input sequence {} contains NaN; expected numbers: fill the gaps, or leave such sequences out"


def out_of_libraries(given: Any) -> Any:
    """Return tensors, also in a list, as arrays, and columns of pyarrow and polars as lists.

    scikit-learn reads no tensor that has a gradient or is on a GPU, and no text of such a column.
    """
    if isinstance(given, Tensor):
        return (given.double() if given.is_floating_point() else given).numpy(force=True)
    if isinstance(given, list | tuple) and any(isinstance(each, Tensor) for each in given):
        return [out_of_libraries(each) for each in given]
    if hasattr(given, "to_pylist") and not hasattr(given, "column_names"):  # a column of pyarrow, no table
        return given.to_pylist()
    if hasattr(given, "to_list") and not hasattr(given, "ndim"):  # a column of polars
        return given.to_list()
    return given


def is_text(X: Any) -> bool:
    """Tell whether the examples are texts: a list, array or series with a string in it."""
    if getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__") or not len(X):
        return False
    numbers = getattr(getattr(X, "dtype", None), "kind", "O") in "biufc"
    return not numbers and any(isinstance(each, str) for each in X)


def numeric_sequences(X: Any) -> list[NDArray[np.float64]]:
    """Return each example as an array of shape (time, features).

    Args:
        X: An array of shape (examples, time, features), or a list of arrays (time, features) of any lengths; of one
            feature also of arrays (time,).
    """
    _check_no_strings(X)
    sequences = []
    for number, one in enumerate(X, 1):
        _check_numbers(one, number)
        name = f"sequence {number}"
        if np.isnan(np.asarray(one, dtype=np.float64)).any():
            raise ValueError(_GAP.format(number))
        if not np.size(one):
            raise ShapeError(f"sequence {number} is empty; expected at least one step: leave such sequences out")
        found = check_array(one, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name=name)
        if found.ndim == 1:
            found = found[:, None]
        if found.ndim != 2 or 0 in found.shape:
            raise ShapeError(f"sequence {number} has shape {found.shape}; expected (time, features), neither of them 0")
        sequences.append(np.ascontiguousarray(found))  # torch takes no array that runs backwards
    if not sequences:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    counts = {one.shape[1] for one in sequences}
    if len(counts) > 1:
        raise ShapeError(f"the sequences have {sorted(counts)} features; expected the same number in each")
    return sequences


def _check_numbers(one: Any, number: int) -> None:
    """Refuse a sequence with dates or names in it; numbers that are written as strings are numbers."""
    _refuse_masked(one, f"sequence {number}")
    try:
        found = np.asarray(one)
        np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        rows = one.to_numpy() if hasattr(one, "to_numpy") else one
        odd = next((each for each in np.ravel(np.asarray(rows, dtype=object)) if not _is_number(each)), None)
        if isinstance(odd, (str, *_DATES)):
            raise UsageError(
                f"sequence {number} holds {str(odd)[:40]!r}; expected numbers: {number_advice(odd)}"
            ) from None
        if type(odd).__name__ == "NAType":  # what pandas' own types of numbers have for a gap
            raise ValueError(_GAP.format(number)) from None
        if isinstance(odd, bytes):
            raise UsageError(f"example {number} holds bytes, {odd[:40]!r}; expected text: decode them first") from None
        return
    if found.dtype.kind in "mM":  # numpy makes numbers of them, in the unit that they happen to have
        raise UsageError(f"sequence {number} holds {str(found.flat[0])!r}; expected numbers: {number_advice(found)}")


def refuse_other_than_texts(X: Any) -> None:
    """Refuse what was given in place of texts, by what it is: rows of a table, lists of words, missing texts."""
    _check_no_strings(X)
    objects = not hasattr(X, "dtype") or _holds_objects(X)
    if objects and all(each is None or isinstance(each, float) for each in X):
        check_strings(list(X))
    raise UsageError("the examples are numbers, but the estimator was fitted on texts")


def number_advice(odd: object) -> str:
    """Say what to do with a value that stands where a number is expected."""
    if isinstance(odd, str) and (hint := number_hint(odd)):
        ways = ["decimal=','"] if odd.count(",") == 1 else []
        ways += ["thousands=','"] if may_have_thousands(odd) else []
        return f"{hint} (in pandas, read_csv with {' or '.join(ways)})" if ways else hint
    return "leave dates out, and give each category a number of 0 or 1"


@dataclass(frozen=True)
class Padded:
    """A batch of sequences."""

    values: Tensor
    """Shape (batch, time) of indices, or (batch, time, features)."""
    lengths: Tensor
    """Shape (batch,)."""


def padded(sequences: Sequence[NDArray[Any]], dtype: torch.dtype) -> Padded:
    """Pad sequences with zeros to the length of the longest."""
    rows = [torch.tensor(one, dtype=dtype) for one in sequences]
    return Padded(pad_sequence(rows, batch_first=True), torch.tensor([len(row) for row in rows]))


def is_nested(X: Any) -> bool:
    """Tell whether the examples are sequences of steps, not rows of numbers."""
    if isinstance(X, np.ndarray | Tensor) and not _holds_objects(X):
        return X.ndim == 3
    if not isinstance(X, Sequence) and not _holds_objects(X):
        return False
    depths = {_depth(each) for each in X if not (isinstance(each, Sequence) and not len(each))}
    return depths == {2} or (depths == {1} and len({len(each) for each in X}) > 1)


def _holds_objects(X: Any) -> bool:
    """Tell whether this is an array or a series, of one axis, of Python's objects."""
    return getattr(X, "ndim", 0) == 1 and getattr(getattr(X, "dtype", None), "kind", "") == "O"


def _depth(example: Any) -> int:
    """Return the number of axes of an example: 1 for numbers, 2 for steps of numbers."""
    if hasattr(example, "shape"):  # frames of polars have no ndim
        return len(example.shape)
    if not isinstance(example, Sequence) or isinstance(example, str):
        return 0
    return 1 + int(len(example) > 0 and (isinstance(example[0], Sequence | np.ndarray)))


def check_container(X: Any) -> None:
    """Refuse what is no list or array of examples, and a list of none, in scikit-learn's words."""
    if isinstance(X, str):
        raise UsageError(f"the examples are the string {X[:40]!r}; expected a list of texts: [{X[:40]!r}]")
    kind = type(X).__name__
    if hasattr(X, "toarray"):
        raise UsageError(f"the examples are a sparse {kind}; expected a dense array: pass X.toarray()")
    if isinstance(X, Mapping | Set):
        raise UsageError(f"the examples are a {kind}; expected a list, in the order of the answers")
    if not isinstance(X, Sequence) and not hasattr(X, "__array__"):
        way = ": list() makes one of it" if isinstance(X, Iterator) else ""
        raise UsageError(f"the examples are a {kind}; expected a list of texts or sequences, or an array{way}")
    if getattr(X, "ndim", 1) == 0:
        raise UsageError("the examples are an array without an axis; expected one with an example in each place")
    if getattr(X, "ndim", 1) == 1 and hasattr(X, "__len__") and not len(X):
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")


def _refuse_masked(values: Any, name: str) -> None:
    """Refuse an array with masked values, which scikit-learn reads as if they were not masked."""
    if np.ma.is_masked(values):
        raise UsageError(f"{name} has masked values; expected numbers: fill them, or cut the sequences there")


def _check_no_strings(X: Any) -> None:
    """Refuse tables and lists of words, which are neither texts nor numbers."""
    rows = np.asarray(X) if hasattr(X, "__array__") else X
    first = rows[0] if hasattr(rows, "__getitem__") and hasattr(rows, "__len__") and len(rows) else ()
    listed = list(first) if isinstance(first, Sequence | np.ndarray) and not isinstance(first, str) else []
    if dates := [each for each in listed if isinstance(each, _DATES)]:
        raise UsageError(
            f"the first example is a row with {str(dates[0])[:40]!r}; expected numbers: leave dates out; windows of "
            "the other columns have shape (examples, time, features)"
        )
    if isinstance(first, bytes):
        raise UsageError(f"the first example is bytes, {first[:40]!r}; expected a text: decode it first")
    strings = [each for each in listed if isinstance(each, str)]
    if any(not _is_number(each) for each in strings):
        raise UsageError(
            f"the first example is a row with {strings[0][:40]!r}; expected texts or numbers: pass one column of a "
            "table, and texts as strings, which tokenizer splits; windows of its numbers have shape (examples, time, "
            "features)"
        )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def checked_rows(estimator: BaseEstimator, X: Any, *, fitted: bool) -> list[NDArray[np.float64]]:
    """Return series of one feature, each of shape (time, 1), all of as many steps as those of the training."""
    _check_no_strings(X)
    _refuse_masked(X, "X")
    if isinstance(X, Sequence) or _holds_objects(X):
        X = list(X)  # of arrays, which an array of objects would hide
        lengths = sorted({len(each) for each in X if _depth(each) == 1})
        if len(lengths) > 1:
            raise UsageError(
                f"the series have {lengths[0]} to {lengths[-1]} steps, but {type(estimator).__name__} was fitted on an "
                "array, whose rows have all the same number; fit it on a list of arrays of shape (time, 1)"
            )
    rows = validate_data(estimator, X, dtype=np.float64, reset=not fitted)
    return [np.ascontiguousarray(row, dtype=np.float64)[:, None] for row in rows]


def with_features(sequences: list[NDArray[Any]], count: int, name: str) -> list[NDArray[Any]]:
    """Return sequences of so many features, in scikit-learn's words if they have others."""
    found = sequences[0].shape[1]
    if found != count:
        raise ValueError(f"X has {found} features, but {name} is expecting {count} features as input")
    return sequences
