"""The contracts of a recurrent cell and of an expansion, for those of this package and for your own."""

from __future__ import annotations

from unrolled.testing.of_cells import CLAUSES, check_cell
from unrolled.testing.of_expansions import check_expansion

__all__ = ["CLAUSES", "check_cell", "check_expansion"]
