"""Tables that show our numbers beside the published ones.

Each of our numbers is a mean over seeds with its sample standard deviation (n - 1); with one seed it has no deviation.
A dash stands for a number that is not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Literal

from unrolled.errors import UsageError

__all__ = ["MISSING", "POINTS", "SHARE", "Number", "Table", "cell", "markdown_table"]

MISSING = "–"
POINTS, SHARE = 1.5, 0.08
"""A number agrees with the published one within 1.5 percentage points, or within 8 % where it is no percentage."""
_LARGE = 1e7
"""Numbers with digits after the point are written with a power of ten from here on."""
_LOGARITHMS = {"nats": math.log, "bits": math.log2}


@dataclass(frozen=True)
class Number:
    """Our number and, if there is one, the published number."""

    ours: Sequence[float] = ()
    """One value for each seed; empty where no trial has run, or none ended well."""
    theirs: float | None = None
    digits: int = 2
    """After the decimal point."""
    percent: bool = False
    """Whether the values are shares, shown in percent."""
    diverged: bool = False
    """Whether trainings ran and none ended well."""
    unit: Literal["", "nats", "bits"] = ""
    """Of a logarithm of a perplexity: it agrees if the perplexities differ by a factor of at most 1.08."""
    bracketed: bool = False
    """Whether a missing published number is shown, as a dash in brackets."""

    def _show(self, value: float) -> str:
        shown = 100 * value if self.percent else value
        return f"{shown:.1e}" if self.digits and abs(shown) >= _LARGE else f"{shown:.{self.digits}f}"

    @property
    def shown_ours(self) -> str:
        """Our number as text: ``mean ± deviation``."""
        if not self.ours:
            return "diverged" if self.diverged else MISSING
        mean = self._show(fmean(self.ours))
        return mean if len(self.ours) == 1 else f"{mean} ± {self._show(stdev(self.ours))}"

    @property
    def shown_theirs(self) -> str:
        """The published number as text."""
        return MISSING if self.theirs is None else self._show(self.theirs)

    def __str__(self) -> str:
        """Write ``ours ± deviation (theirs)``."""
        hidden = self.theirs is None and not self.bracketed
        return self.shown_ours if hidden else f"{self.shown_ours} ({self.shown_theirs})"

    @property
    def difference(self) -> float | None:
        """Ours minus theirs, in the unit shown; None where one of them is missing."""
        if not self.ours or self.theirs is None:
            return None
        return (fmean(self.ours) - self.theirs) * (100 if self.percent else 1)

    @property
    def agrees(self) -> bool | None:
        """Whether ours is within the tolerance of theirs; None where there is nothing to compare."""
        if self.theirs is None or not (self.ours or self.diverged):
            return None
        if self.unit:
            tolerance = _LOGARITHMS[self.unit](1 + SHARE)
        else:
            tolerance = POINTS if self.percent else SHARE * abs(self.theirs)
        return self.difference is not None and abs(self.difference) <= tolerance + 1e-9  # rounding


def cell(number: Number, *, ran: bool) -> Number:
    """Mark the number of trainings that may fail: diverged if they ran without a value; show a missing theirs too."""
    return replace(number, diverged=ran and not number.ours, bracketed=True)


@dataclass(frozen=True)
class Table:
    """Rows of cells under a heading.

    Raises:
        UsageError: If a row has not as many cells as there are columns.
    """

    title: str
    """What the table shows, with units."""
    columns: Sequence[str]
    """The first is the heading of the rows' names."""
    rows: Sequence[Sequence[str | Number]]
    """Each is a name and its cells."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise UsageError(f"a row of {self.title!r} has {len(row)} cells; expected {len(self.columns)}")

    @property
    def naming(self) -> int:
        """How many of the first columns tell the rows apart."""
        width = 1
        while width < len(self.columns) and len({tuple(map(str, row[:width])) for row in self.rows}) < len(self.rows):
            width += 1
        return width

    def numbers(self) -> Iterator[tuple[str, str, Number]]:
        """Give every number with the name of its row, the first cells that tell the rows apart, and its column."""
        naming = self.naming
        for row in self.rows:
            for column, number in zip(self.columns, row, strict=True):
                if isinstance(number, Number):
                    yield ", ".join(map(str, row[:naming])), column, number

    def cells(self) -> list[list[str]]:
        """Write every cell as text."""
        return [[str(each) for each in row] for row in self.rows]

    def markdown(self) -> str:
        """Write the title and the table as Markdown."""
        return f"**{_escape(self.title)}**\n\n{markdown_table(self.columns, self.cells())}"


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table: the first column to the left, the others to the right; bars and tags are escaped."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(_escape(each).replace("|", "\\|").replace("\n", " ") for each in cells) + " |"

    border = "| --- |" + " ---: |" * (len(columns) - 1)
    return "\n".join([line(columns), border, *map(line, rows)])


def _escape(text: str) -> str:
    """Keep tokens such as ``<unk>`` from being read as HTML, of which browsers show nothing."""
    return text.replace("<", "\\<")
