r"""The base classes of expansions: rules that turn a layer's step into g_t + A_t s_{t-1}.

An expansion declares two properties as class attributes; the tests check them:

- ``exact``: the n-gram terms v_{i:t} = A_t … A_{i+1} g_i sum to the state;
- ``local``: v_{i:t} depends on the tokens i … t alone, so a phrase has one meaning at every place.

No expansion here has both for a non-linear network. The user chooses, and every result names the expansion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast

from torch import Tensor

from unrolled.cells.ray import Ray
from unrolled.errors import ConvergenceError, UsageError, kind_of
from unrolled.linalg.operators import Operator

__all__ = ["TOLERANCE", "Expansion", "Linearisation"]

TOLERANCE = 1e-6
"""Relative error to which a rule with error control integrates, unless another one is asked for."""


class Expansion(ABC):
    """Writes a state as a sum of n-gram terms: one linearisation, or the mean of several."""

    name: ClassVar[str]
    exact: ClassVar[bool]
    local: ClassVar[bool]

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        """Build the expansion from the arguments of ``name(word, word)``.

        Raises:
            UsageError: If the expansion takes no arguments.
        """
        if words:
            raise UsageError(f"expansion {cls.name!r} takes no arguments: remove ({', '.join(words)})")
        return cls()

    @abstractmethod
    def members(self) -> tuple[Linearisation, ...]:
        """Return the linearisations whose n-grams are averaged; a linearisation is its own only member."""

    def __str__(self) -> str:
        return self.name


class Linearisation(Expansion):
    """A rule on the Jacobian along the ray; it gives one affine recurrence."""

    @abstractmethod
    def expand(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator]:
        """Expand one layer at every step.

        Args:
            ray: The line from the empty state to the state of the network.
            tolerance: Relative error of a single step at which a rule with error control stops.

        Returns:
            g, shape (time, batch, state), and the operators A of all steps.

        Raises:
            ConvergenceError: If a rule with error control does not reach the tolerance; it holds the result.
        """

    def expand_checked(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator]:
        """Expand one layer; what an expansion of a user's own gives is refused if it is no g with operators.

        Raises:
            UsageError: If it is not.
        """
        found: Any = self.expand(ray, tolerance)
        shape, kinds = tuple(ray.end.shape), (Tensor, Operator)
        pair = found if isinstance(found, tuple) and len(found) == len(kinds) else (found,)
        if len(pair) != len(kinds) or not all(map(isinstance, pair, kinds)):
            raise UsageError(
                f"{self}.expand gave {', '.join(map(kind_of, pair))}; expected g, a tensor of shape (time, batch, "
                "state), and the operators A, such as ray.at(1.0) or unrolled.linalg.matrices.Matrices(A, C)"
            )
        if tuple(pair[0].shape) != shape:
            raise UsageError(
                f"{self}.expand gave g of shape {tuple(pair[0].shape)}; expected {shape}, that of ray.end: (time, "
                "batch, state)"
            )
        return found

    def expand_or_keep(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator, ConvergenceError | None]:
        """Expand one layer; a quadrature that does not reach the tolerance is kept as it is, with its failure."""
        try:
            return *self.expand_checked(ray, tolerance), None
        except ConvergenceError as error:
            return *cast("tuple[Tensor, Operator]", error.expanded), error

    def members(self) -> tuple[Linearisation, ...]:
        """Return the expansion itself."""
        return (self,)
