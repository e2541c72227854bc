"""What terminal, figure and page show of an account."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from unrolled.errors import NonFiniteError
from unrolled.report.colour import rounded_limit
from unrolled.report.formatting import clip, visible
from unrolled.report.page_view import cancellation_words

__all__ = ["AccountView", "Group"]

_LISTED = 12
"""How many biases and constants are listed by name."""


@dataclass(frozen=True)
class Group:
    """The sources of one argument."""

    name: str
    labels: tuple[str, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class AccountView:
    """One example of an account, as plain numbers."""

    target: str
    expansion: str
    groups: tuple[Group, ...]
    biases: Mapping[str, float]
    constants: Mapping[str, float]
    initial: float
    remainder: float
    output: float
    cancellation: float
    closes: bool
    notes: tuple[str, ...]
    by_feature: tuple[Group, ...] = ()
    """The same contributions by feature, summed over the steps."""
    recurrent: bool = True
    """Whether the expansion was used: whether the model ran a recurrent network that follows it."""

    @property
    def shown(self) -> tuple[Group, ...]:
        """All groups; those by feature are no summands of their own."""
        return (*self.groups, *self.by_feature)

    @property
    def text(self) -> str:
        """The tokens of all texts; empty of numbers, whose names do not tell examples apart."""
        return " ".join(label for group in self.groups if group.name.startswith("tokens") for label in group.labels)

    @property
    def method(self) -> str:
        """Say by which rules the output was accounted for."""
        if not self.recurrent:  # a scan, attention or a loop of the model's own does not follow the expansion
            return "by shares"
        return f"recurrent networks by {clip(visible(self.expansion), 40)}, all else by shares"

    @property
    def limit(self) -> float:
        """The end of the colour scale: the largest contribution of a source, rounded up."""
        values = [value for group in self.shown for value in group.values]
        if not all(map(math.isfinite, (*values, self.output))):
            raise NonFiniteError("the account holds NaN or infinity; expected finite numbers")
        return rounded_limit(max(map(abs, values), default=0.0))

    @property
    def entries(self) -> list[tuple[str, float]]:
        """The summands of the output in the order of the ledger; the last is the remainder."""
        found = [(group.name, math.fsum(group.values)) for group in self.groups]
        if self.initial:
            found.append(("initial states", self.initial))
        if self.biases:
            found.append(("biases", math.fsum(self.biases.values())))
        if self.constants:
            found.append(("constants", math.fsum(self.constants.values())))
        return [*found, ("remainder", self.remainder)]

    @property
    def named(self) -> list[tuple[str, float]]:
        """The largest biases and constants by name, and the sum of the others."""
        every = sorted({**self.biases, **self.constants}.items(), key=lambda item: -abs(item[1]))
        rest = every[_LISTED:]
        return [*every[:_LISTED], *([(f"{len(rest)} more", math.fsum(v for _, v in rest))] if rest else [])]

    @property
    def verdict(self) -> str:
        """Say whether the account closes, and where its summands cancel, how far."""
        closes = "closes: the remainder is rounding" if self.closes else "does not close: see the remainder"
        cancels = cancellation_words(self.cancellation)
        return f"{closes}; {cancels}" if cancels else closes
