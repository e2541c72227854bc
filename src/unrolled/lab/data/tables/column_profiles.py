"""What a column of a table holds, as far as its first rows tell: text, few values, numbers, dates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from unrolled.lab.data.tables.values import is_date, is_number, mean_words, share

__all__ = ["ColumnProfile", "column_profiles"]


@dataclass(frozen=True)
class ColumnProfile:
    """What a column holds, as far as the first rows tell."""

    name: str
    words: float
    """Mean number of words of a field."""
    values: int
    """Number of different fields."""
    rows: int
    numeric: float
    """Share of fields that are numbers."""
    dates: float
    marked: float
    """Share of fields that mark entities."""
    counts: bool
    """Whether the fields are different whole numbers, as the numbers of rows are."""

    @property
    def is_text(self) -> bool:
        """Whether the fields are free text."""
        free = (self.words >= 1.5 and 2 * self.values > self.rows) or (self.words > 4 and 10 * self.values > self.rows)
        return free and self.numeric < 0.5 and self.dates < 0.5

    @property
    def is_few(self) -> bool:
        """Whether the fields are few values, as labels are."""
        return 2 <= self.values <= max(2, self.rows // 4, min(5, self.rows // 2)) and self.words <= 4 and not self.dates

    @property
    def is_rating(self) -> bool:
        """Whether the fields are numbers, and none that count the rows."""
        return self.numeric > 0.9 and self.values > 1 and not self.counts and not self.dates

    def __str__(self) -> str:
        """Write the name and what the column holds, for an error."""
        if self.is_text:
            what = f"text, {self.words:.0f} words on average"
        elif self.dates >= 0.5:
            what = "dates"
        elif self.values <= 20:
            what = f"{self.values} value{'s' if self.values != 1 else ''}"
        else:
            what = "numbers" if self.numeric > 0.9 else f"{self.values:,} different values"
        return f"{self.name} ({what})"


def column_profiles(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[ColumnProfile]:
    """Say what each column of a table holds; ``header`` is empty if the file has none."""
    widths = Counter(len(row) for row in rows if any(row))
    width = len(header) or (widths.most_common(1)[0][0] if widths else 0)
    columns = [[row[place].strip() for row in rows if len(row) == width] for place in range(width)]
    names = [name.strip() or f"column {place + 1}" for place, name in enumerate(header or ("",) * width)]
    return [_profile(name, [field for field in column if field]) for name, column in zip(names, columns, strict=True)]


def _profile(name: str, fields: Sequence[str]) -> ColumnProfile:
    numbers = [int(field) for field in fields if field.isdecimal() and len(field) < 18]
    return ColumnProfile(
        name=name,
        words=mean_words(fields),
        values=len(set(fields)),
        rows=len(fields),
        numeric=share(fields, is_number),
        dates=share(fields, is_date),
        marked=share(fields, lambda field: "<e1>" in field),
        counts=len(numbers) == len(fields) > 2 and len(set(numbers)) == len(numbers),
    )
