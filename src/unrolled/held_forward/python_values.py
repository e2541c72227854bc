"""Operations that give Python what a tensor holds, and make tensors of what Python has."""

from __future__ import annotations

__all__ = ["FROM_PYTHON", "LISTS_TO_PYTHON", "TO_NUMPY", "TO_PYTHON"]

TO_NUMPY = frozenset({"numpy", "__array__"})
"""Operations that give numpy what a tensor holds."""
LISTS_TO_PYTHON = TO_NUMPY | {"tolist"}
"""Operations that give Python many numbers at once."""
TO_PYTHON = LISTS_TO_PYTHON | frozenset("item __float__ __int__ __index__ __complex__".split())
"""Operations that give Python numbers."""
FROM_PYTHON = frozenset({"tensor", "as_tensor", "new_tensor", "from_numpy", "asarray"})
"""Operations that make tensors of what Python has."""
