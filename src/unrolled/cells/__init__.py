"""The zoo of recurrent cells: one a file, found by listing."""

from unrolled.recurrence.cell import Cell
from unrolled.zoo import Zoo

__all__ = ["CELLS"]

CELLS: Zoo[Cell] = Zoo(__name__, Cell, "cell")  # type: ignore[type-abstract]  # members are concrete
