"""The numbers that an explanation of an estimator shows: the user's, and what is contributed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from torch import Tensor

    from unrolled.explanation.explanation import Explanation

__all__ = ["with_values"]


_NOTE = "the contribution of a number is that of its distance from the mean of the training sequences"


def with_values(found: Explanation, values: Tensor) -> Explanation:
    """Show the numbers as they were given, not as they were standardised."""

    def shown(each: Explanation) -> Explanation:
        if each.features is None:
            return each
        return replace(each, features=replace(each.features, values=values), notes=(*each.notes, _NOTE))

    by_class = tuple(shown(cast("Explanation", each)) for each in found.by_class)
    return replace(shown(found), by_class=by_class)
