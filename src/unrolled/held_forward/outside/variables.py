"""``torch.autograd.Variable(x)`` as x: it makes another tensor of the same numbers where no mode can see it.

Models from the time before torch 0.4 wrap their inputs and their carried states in it.
"""

from __future__ import annotations

from collections import Counter
from threading import Lock, get_ident
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd import Variable

from unrolled.held_forward.operations.operation_mode import OperationMode

__all__ = ["ReadsVariables"]

_LOCK = Lock()
_READING: Counter[int] = Counter()  # threads, by how many modes are open in them


class ReadsVariables(OperationMode):
    """A mode under which Variable returns, in its thread, the tensor that it is given."""

    def __enter__(self) -> Self:
        with _LOCK:
            if not _READING:
                Variable.__new__ = _itself  # type: ignore[method-assign]  # until the last mode ends
            _READING[get_ident()] += 1
        return super().__enter__()

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        with _LOCK:
            _READING[get_ident()] -= 1
            if not _READING[get_ident()]:
                del _READING[get_ident()]
            if not _READING:
                del Variable.__new__


def _itself(cls: type, data: Any = None, *options: Any, **named: Any) -> Any:
    if isinstance(data, Tensor) and get_ident() in _READING:
        return data
    return torch._C._LegacyVariableBase.__new__(cls, data, *options, **named)
