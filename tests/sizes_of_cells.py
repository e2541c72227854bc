"""Which cells of the library are of fewer sizes than others."""

from __future__ import annotations

from unrolled.cells import CELLS
from unrolled.errors import UsageError

__all__ = ["SLOTS"]


def holds_whole_inputs(name: str) -> bool:
    """Whether the units of a cell are slots for inputs: no layer is narrower than what it reads."""
    try:
        CELLS.get(name)(5, 8)
    except UsageError as error:
        if "hidden_size is 8; expected a multiple of input_size, 5" not in str(error):
            raise
        return True
    return False


SLOTS = frozenset(filter(holds_whole_inputs, CELLS.names()))
