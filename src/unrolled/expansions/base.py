r"""What an expansion is: a rule that turns a layer's step into g_t + A_t s_{t-1}.

Two facts of an expansion are class attributes, and the tests hold it to them:

- ``exact``: the n-gram terms v_{i:t} = A_t … A_{i+1} g_i sum to the state;
- ``local``: v_{i:t} depends on the tokens i … t alone, so a phrase means the same wherever it stands.

No expansion of a non-linear network is both. That is the trade a user chooses, and every result names it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from torch import Tensor

from unrolled.cells.ray import Ray
from unrolled.errors import UsageError
from unrolled.linalg.operators import Operator

__all__ = ["Expansion", "Linearisation"]


class Expansion(ABC):
    """A way to write a state as a sum of n-gram terms: one linearisation, or the mean of several."""

    name: ClassVar[str]
    exact: ClassVar[bool]
    local: ClassVar[bool]

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        """Build the expansion from the words in its brackets.

        Args:
            words: what stood between the brackets of ``name(word, word)``.

        Returns:
            The expansion.

        Raises:
            UsageError: when it takes none.
        """
        if words:
            raise UsageError(f"expansion {cls.name!r} takes no arguments; {', '.join(words)} came")
        return cls()

    @abstractmethod
    def members(self) -> tuple[Linearisation, ...]:
        """Give the linearisations whose n-grams are averaged; a linearisation is its own only member."""

    def __str__(self) -> str:
        return self.name


class Linearisation(Expansion):
    """A rule on the Jacobian along the ray, which gives one affine recurrence."""

    @abstractmethod
    def expand(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator]:
        """Expand one layer at every step.

        Args:
            ray: the line from the origin to where the network was.
            tolerance: relative error of a single step that a rule with an error control stops at.

        Returns:
            g, shape (time, batch, state), and the operators A of all steps.
        """

    def members(self) -> tuple[Linearisation, ...]:
        """Give itself."""
        return (self,)
