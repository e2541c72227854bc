"""Operations that give Python what a tensor holds, and make tensors of what Python has."""

from __future__ import annotations

from unrolled.errors import UnsupportedOperationError

__all__ = ["FROM_PYTHON", "LISTS_TO_PYTHON", "TAKES_OUT", "TO_NUMPY", "TO_PYTHON", "taken_out_error"]

TO_NUMPY = frozenset({"numpy", "__array__"})
"""Operations that give numpy what a tensor holds."""
LISTS_TO_PYTHON = TO_NUMPY | {"tolist"}
"""Operations that give Python many numbers at once."""
TO_PYTHON = LISTS_TO_PYTHON | frozenset("item __float__ __int__ __index__ __complex__".split())
"""Operations that give Python numbers."""
TAKES_OUT = TO_PYTHON | {"__format__", "repr"}
"""Operations that give Python numbers, or a text of them, which it may read back."""
FROM_PYTHON = frozenset({"tensor", "as_tensor", "new_tensor", "from_numpy", "asarray"})
"""Operations that make tensors of what Python has."""


def taken_out_error(name: str, where: str = "") -> UnsupportedOperationError:
    """Return the error for numbers that carry value and leave torch by an operation of this name.

    ``where`` is put behind the name, as " in another thread".
    """
    return UnsupportedOperationError(
        f"the model takes numbers out of torch ({name}){where}, where value cannot be followed; "
        "compute that step with torch operations, or explain the part of the model before it"
    )
