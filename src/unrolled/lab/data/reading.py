"""What a user may say about their own files, and rows that are no examples: listed, or left out on request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from unrolled.errors import DataError

__all__ = ["PLAIN", "InvalidRow", "Reading", "all_invalid", "left_out", "line_list", "only_valid"]

T = TypeVar("T")
_LISTED = 8  # runs of lines in one message


@dataclass(frozen=True)
class Reading:
    """How files are to be read, where they do not say it themselves."""

    text_column: str | None = None
    """Name or number, from 1, of the column of the texts; None to find it."""
    label_column: str | None = None
    """Name or number, from 1, of the column of the labels; None to find it."""
    header: bool = True
    """Whether the first line may name the columns."""
    skip_invalid: bool = False
    """Whether rows that are no examples are left out and counted."""
    trained_text: str | None = None
    """Name of the column of the texts that a model was trained on; taken where a file has it and no other is named."""
    trained_label: str | None = None
    """The same for the labels."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The settings about columns that were given, as they are written on a command line."""
        named = {"--text-column": self.text_column, "--label-column": self.label_column}
        return (
            *(name for name, value in named.items() if value is not None),
            *(() if self.header else ("--no-header",)),
        )


PLAIN = Reading()
"""Nothing is said: the file decides."""


@dataclass(frozen=True, slots=True)
class InvalidRow:
    """A row that is no example."""

    path: Path
    line: int
    """The line at which it begins, counted from 1."""
    fault: str
    """What is wrong with rows of this sort: ``"without a text"``."""
    error: DataError
    """The whole message, for a row that is the only one."""


def only_valid(rows: Iterable[T | InvalidRow]) -> Iterator[T]:
    """Yield rows as they are, up to the first that is no example: DataError about it."""
    for row in rows:
        if isinstance(row, InvalidRow):
            raise row.error
        yield row


def all_invalid(rows: Sequence[InvalidRow]) -> DataError:
    """Return the error about rows that are no examples; it lists the lines of the first of them."""
    if len(rows) == 1:
        return DataError(f"{rows[0].error}; --skip-invalid leaves the row out")
    first = str(rows[0].error).removeprefix(f"{rows[0].path}:")
    return DataError(
        f"{'; '.join(_by_file(rows))}; correct them, or leave them out with --skip-invalid; the first, line {first}"
    )


def left_out(rows: Sequence[InvalidRow]) -> tuple[str, ...]:
    """Return a note for each file about the rows that are left out."""
    return tuple(f"left out: {text}" for text in _by_file(rows))


def _by_file(rows: Iterable[InvalidRow]) -> list[str]:
    found: dict[Path, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row.path][row.fault].append(row.line)
    return [
        f"{path}: " + ", ".join(f"{_counted(lines)} {fault} ({line_list(lines)})" for fault, lines in faults.items())
        for path, faults in found.items()
    ]


def _counted(lines: Sequence[int]) -> str:
    return f"{len(lines):,} row{'s' if len(lines) > 1 else ''}"


def line_list(lines: Sequence[int]) -> str:
    """List lines, neighbours as a range: ``lines 3, 7-9``."""
    runs = [
        [line for _, line in run] for _, run in groupby(enumerate(sorted(lines)), key=lambda place: place[1] - place[0])
    ]
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    rest = sum(map(len, runs[_LISTED:]))
    more = f" and {rest:,} more" if rest else ""
    return f"line{'s' if len(lines) > 1 else ''} {', '.join(shown[:_LISTED])}{more}"
