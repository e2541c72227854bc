r"""The mean of several exact expansions; it is exact as well, because the sum of the terms is linear.

.. math:: v_{i:t} = \frac1M \sum_m v^{(m)}_{i:t}
"""

from __future__ import annotations

from collections.abc import Sequence

from unrolled.errors import UsageError
from unrolled.expansions import EXPANSIONS
from unrolled.expansions.base import Expansion, Linearisation

__all__ = ["Mean"]


class Mean(Expansion):
    """Average the n-grams of several exact expansions.

    Raises:
        UsageError: If there are fewer than two, or one of them is not exact.
    """

    name = "mean"
    exact = True
    local = False

    def __init__(self, *expansions: Expansion) -> None:
        if len(expansions) < 2:
            raise UsageError(f"a mean of {len(expansions)} expansions; expected two or more: mean(operating, path)")
        for expansion in expansions:
            if not expansion.exact:
                raise UsageError(f"{expansion} is not exact, so a mean with it would not be; expected exact ones")
        self.expansions = expansions

    @classmethod
    def parse(cls, words: Sequence[str]) -> Mean:
        """Build the mean of expansions without arguments, by name; of operating and path without any."""
        return cls(*(EXPANSIONS.get(word).parse(()) for word in words or ("operating", "path")))

    def members(self) -> tuple[Linearisation, ...]:
        """Return the linearisations whose n-grams are averaged."""
        return tuple(member for expansion in self.expansions for member in expansion.members())

    def __str__(self) -> str:
        return f"mean({', '.join(map(str, self.expansions))})"
