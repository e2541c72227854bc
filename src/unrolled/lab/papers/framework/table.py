"""Tables in which our figures stand beside the published ones.

A figure of ours is a mean over seeds with its standard deviation; one seed is one number, and says so by having none.
A published number that the text at hand does not give is a dash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from unrolled.errors import UsageError

__all__ = ["Number", "Table", "compare"]

MISSING = "–"


@dataclass(frozen=True)
class Number:
    """A figure of ours and, if there is one, theirs.

    Args:
        ours: one value for each seed; none when the trial has not been run.
        theirs: the published value.
        digits: behind the point.
        percent: whether shares are shown as percentages.
    """

    ours: Sequence[float] = ()
    theirs: float | None = None
    digits: int = 2
    percent: bool = False

    def _show(self, value: float) -> str:
        return f"{100 * value if self.percent else value:.{self.digits}f}"

    def __str__(self) -> str:
        """Write ``ours ± deviation (theirs)``."""
        if not self.ours:
            mine = MISSING
        elif len(self.ours) == 1:
            mine = self._show(self.ours[0])
        else:
            mine = f"{self._show(fmean(self.ours))} ± {self._show(stdev(self.ours))}"
        return mine if self.theirs is None else f"{mine} ({self._show(self.theirs)})"

    @property
    def difference(self) -> float | None:
        """Ours less theirs, in the unit shown; None where one of them is missing."""
        if not self.ours or self.theirs is None:
            return None
        return (fmean(self.ours) - self.theirs) * (100 if self.percent else 1)


@dataclass(frozen=True)
class Table:
    """Rows of cells under a heading.

    Args:
        title: what the table shows; its units.
        columns: the heading, the rows' own names first.
        rows: for each a name and its cells.

    Raises:
        UsageError: when a row has not as many cells as there are columns.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Number]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise UsageError(f"a row of {self.title!r} has {len(row)} cells; expected {len(self.columns)}")

    def cells(self) -> list[list[str]]:
        """Write every cell.

        Returns:
            The rows as text.
        """
        return [[str(cell) for cell in row] for row in self.rows]

    def markdown(self) -> str:
        """Write the table as Markdown.

        Returns:
            Lines, the title first; what looks like a column's border is escaped.
        """

        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

        border = "| --- |" + " ---: |" * (len(self.columns) - 1)
        return "\n".join([f"**{self.title}**", "", line(self.columns), border, *map(line, self.cells())])


def compare(what: str, number: Number, unit: str, *, higher: bool, close: float) -> str:
    """Say in plain words how our figure differs from theirs.

    Args:
        what: whose figure it is.
        number: both figures.
        unit: of the figure as it is shown: ``points``, ``nats``.
        higher: whether more is better.
        close: the difference, in that unit, below which the two agree.

    Returns:
        A sentence.
    """
    difference = number.difference
    if difference is None:
        return f"{what}: {'not run at this scale' if not number.ours else 'no published figure'}."
    size = f"{abs(difference):.{number.digits}f} {unit}"
    if abs(difference) <= close:
        return f"{what}: as published, within {size}."
    return f"{what}: {'better' if (difference > 0) == higher else 'worse'} than published by {size}."
