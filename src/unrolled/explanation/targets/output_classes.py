"""The classes of a model's output, by index and by name."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from unrolled.errors import ShapeError, UnknownNameError, UsageError
from unrolled.whole_number import whole_number

__all__ = ["class_index", "class_names"]


def class_names(classes: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Return the names of the outputs as the user gave them; empty if there are none.

    Raises:
        ShapeError: If there are more or fewer.
    """
    if classes is None:
        return ()
    if isinstance(classes, str) or len(classes) != count:
        found = f"the string {classes[:40]!r}" if isinstance(classes, str) else f"{len(classes)} names"
        raise ShapeError(f"classes are {found}; expected {count}, one name for each output")
    return tuple(map(str, classes))


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
        return names.index(given)
    if isinstance(given, bool) or getattr(given, "dtype", None) == torch.bool:
        raise UsageError(f"the {role} is a truth value; expected an index of the output, such as 1")
    index = whole_number(given)
    if index is None:
        hint = ", or its name, with classes=" if isinstance(given, str) else ", or a callable"
        raise UsageError(f"the {role} is a {type(given).__name__}; expected an index of the output{hint}")
    if not -count <= index < count:
        raise UsageError(f"{role} is {index}; expected 0 to {count - 1}, an index of the output")
    return index % count
