"""The classes of a model's output, by index and by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set

import torch

from unrolled.decomposition.arguments import checked_names
from unrolled.errors import UnknownNameError, UsageError, kind_of
from unrolled.whole_number import whole_number

__all__ = ["class_index", "class_names"]

_OF_EACH = "for a class of each example: target=lambda out: out[torch.arange(len(out)), torch.tensor(classes)]"


def class_names(classes: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Return the names of the outputs as the user gave them; empty if there are none.

    Raises:
        ShapeError: If there are more or fewer.
        UsageError: If they are no list.
    """
    return () if classes is None else checked_names("classes", classes, count, "output")


def class_index(role: str, given: object, names: Sequence[str], count: int) -> int:
    """Return the index of an output by its index or its name.

    Args:
        role: What it is in an error: ``"target"``.
        given: The index, which may count from the end, or the name.
        names: Of the outputs; empty if there are none.
        count: Number of outputs.

    Raises:
        UnknownNameError: If no output has the name.
        UsageError: If it is neither, or out of range.
    """
    if isinstance(given, str) and names:
        if given not in names:
            raise UnknownNameError("class", given, names)
        if names.count(given) > 1:
            raise UsageError(f"{given!r} is the name of several outputs; pass the index of one as {role}")
        return names.index(given)
    subject = "the target" if role == "target" else role
    if isinstance(given, bool) or getattr(given, "dtype", None) == torch.bool:
        raise UsageError(f"{subject} is a truth value; expected an index of the output, such as 1")
    index = whole_number(given)
    if index is None:
        hint = ", or its name, with classes=" if isinstance(given, str) or role != "target" else ", or a callable"
        if role == "target" and _are_indices(given):
            hint += f"; {_OF_EACH}"
        raise UsageError(f"{subject} is {kind_of(given)}; expected an index of the output{hint}")
    if not -count <= index < count:
        raise UsageError(f"{role} is {index}; expected 0 to {count - 1}, an index of the output")
    return index % count


def _are_indices(given: object) -> bool:
    """Tell whether these are several indices, in a list, an array or a column of a table."""
    single = getattr(given, "ndim", 1) == 0  # an array of no axis has no entries to go through
    if single or not isinstance(given, Collection) or isinstance(given, str | bytes | Mapping | Set):
        return False
    return len(given) > 0 and all(not isinstance(each, bool) and whole_number(each) is not None for each in given)
