"""The numbers that an explanation of an estimator shows: the user's, and what is contributed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from torch import Tensor

    from unrolled.explanation.explanation import Explanation

__all__ = ["with_values", "with_values_of_row"]

_OF_MEAN = "the contribution of a number is that of its distance from the mean of the training sequences"
_OF_ROWS = (
    "each row was read as a series of one feature, its columns as the steps; of a table whose rows are steps, give "
    "windows of shape (examples, time, features)"
)


def with_values(found: Explanation, values: Tensor) -> Explanation:
    """Show the numbers of a sequence as they were given, not as they were standardised."""
    return _with_values(found, values, (_OF_MEAN,))


def with_values_of_row(found: Explanation, values: Tensor) -> Explanation:
    """Show the numbers as :func:`with_values` does, and note how the row of a table was read."""
    return _with_values(found, values, (_OF_MEAN, _OF_ROWS))


def _with_values(found: Explanation, values: Tensor, notes: tuple[str, ...]) -> Explanation:

    def shown(each: Explanation) -> Explanation:
        if each.features is None:
            return each
        return replace(each, features=replace(each.features, values=values), notes=(*each.notes, *notes))

    by_class = tuple(shown(cast("Explanation", each)) for each in found.by_class)
    return replace(shown(found), by_class=by_class)
