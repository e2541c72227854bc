r"""The mean of several exact expansions; it is exact as well, because the sum of the terms is linear.

.. math:: v_{i:t} = \frac1M \sum_m v^{(m)}_{i:t}
"""

from __future__ import annotations

from collections.abc import Sequence

from unrolled.errors import UsageError
from unrolled.expansions import resolve
from unrolled.expansions.base import Expansion, Linearisation

__all__ = ["Mean"]


class Mean(Expansion):
    """Average the n-grams of several exact expansions, given as names or as expansions.

    Raises:
        UsageError: If there are fewer than two, or one of them is not exact, or a mean itself.
    """

    name = "mean"
    exact = True
    local = False

    def __init__(self, *expansions: str | Expansion) -> None:
        if len(expansions) < 2:
            raise UsageError(f"a mean of {len(expansions)} expansions; expected two or more: mean(operating, path)")
        self.expansions = tuple(map(resolve, expansions))
        for expansion in self.expansions:
            if not expansion.exact:
                raise UsageError(f"{expansion} is not exact, so a mean with it would not be; expected exact ones")
            if isinstance(expansion, Mean):  # its members would count as much as the others
                raise UsageError(f"{expansion} is a mean within a mean; name its expansions in one mean")

    @classmethod
    def parse(cls, words: Sequence[str]) -> Mean:
        """Build the mean of expansions by name; of operating and path where no name is given."""
        return cls(*(words or ("operating", "path")))

    def members(self) -> tuple[Linearisation, ...]:
        """Return the linearisations whose n-grams are averaged."""
        return tuple(member for expansion in self.expansions for member in expansion.members())

    def __str__(self) -> str:
        return f"mean({', '.join(map(str, self.expansions))})"
