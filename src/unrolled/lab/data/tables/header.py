"""Which line of a table is its header, and which lines stand above it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from unrolled.errors import DataError
from unrolled.lab.data.reading import Reading
from unrolled.lab.data.tables.names import LABELS, TEXTS, is_usual_name
from unrolled.lab.data.tables.values import is_number, is_value, mean_words, share
from unrolled.lab.data.text_files import without_escapes

__all__ = ["FirstLine", "count_above", "kind_of_first_line", "names_surely"]

_NAME_WORDS = 3  # a column's name has no more
_TEXT_WORDS = 6  # free text has more, so that a name is not taken for one


class FirstLine(Enum):
    """What a first line is."""

    HEADER = 1
    GUESSED = 2
    """A header by its length alone: a short example would look the same."""
    ROW = 3


def kind_of_first_line(
    path: Path, line: int, first: Sequence[str], others: Sequence[Sequence[str]], reading: Reading
) -> FirstLine:
    """Tell whether a line names the columns of the rows below it; DataError if that cannot be told.

    A name that the user gave, or of the training, or a usual one settles it. Else the line is a row if it has a number,
    a long field, or a field that occurs again; and a header if numbers stand below its words. What is left is short: a
    header by guess if the texts below are long. Above numbers, as other programs count rows, a name may be empty.
    ``0,1`` above texts, which pandas writes where columns have no names, are a header by guess too.
    """
    names = [field.strip().lower() for field in first]
    if not reading.header:
        return FirstLine.ROW
    if _known(reading, names) & set(names) or all(map(is_usual_name, names)):
        return FirstLine.HEADER
    if any(name is not None and not name.isdecimal() for name in (reading.text_column, reading.label_column)):
        return FirstLine.HEADER  # a name that is not there is an error of the line that should have it
    if len(names) < 2:
        return FirstLine.ROW
    if (TEXTS | LABELS) & set(names):
        return FirstLine.HEADER
    below = list(zip(*(row for row in others if len(row) == len(first)), strict=True))
    valued = [share(column, is_value) > 0.9 for column in below]
    # rows may be counted, or have names; above values alone, an empty field may be that of a missing text
    counted = next((place for place, name in enumerate(names) if name), 0)
    counted *= all(valued[:counted]) or not all(valued[counted:])
    if names[counted:] == [str(place) for place in range(len(names) - counted)] and not all(valued):
        return FirstLine.GUESSED
    if not below or _is_row(first, below, valued):
        return FirstLine.ROW
    if any(map(is_usual_name, names)) or any(
        of_values and not is_value(field) for field, of_values in zip(first, valued, strict=True)
    ):
        return FirstLine.HEADER
    if max(map(mean_words, below)) >= _TEXT_WORDS:
        return FirstLine.GUESSED
    shown = ", ".join(repr(without_escapes(field)) for field in first)
    raise DataError(
        f"{path}:{line}: cannot tell whether {shown} names the columns or is an example, since nothing of it occurs "
        "again; pass --no-header if it is an example, or name the column of the texts with --text-column"
    )


def _known(reading: Reading, names: Sequence[str]) -> set[str]:
    """Return the names of columns that the user gave, and those of the training, in lower case."""
    # a number that the user gave is a name only where all columns have numbers for names, as pandas writes them
    numbered = all(name.isdecimal() for name in names)
    given = {name.lower() for name in (reading.text_column, reading.label_column) if name is not None}
    trained = {name.lower() for name in (reading.trained_text, reading.trained_label) if name is not None}
    return trained | {name for name in given if numbered or not name.isdecimal()}


def _is_row(first: Sequence[str], below: Sequence[Sequence[str]], valued: Sequence[bool]) -> bool:
    """Tell whether a line cannot name its columns: by a field that is no name, or that a column has again."""
    written = [field.strip().lower() for field in first if field.strip()]
    return (
        len(set(written)) < len(written)
        or any(is_number(field) or len(field.split()) > _NAME_WORDS for field in written)
        or any(field in column for field, column in zip(first, below, strict=True))
        or not all(field.strip() or of_values for field, of_values in zip(first, valued, strict=True))
    )


def count_above(head: Sequence[Sequence[str]], quotes: bool, reading: Reading) -> int:
    """Count the lines above the first that may be a header: blank lines, titles, comments.

    A title has one field, which a spreadsheet fills up with empty ones. Above names that are known it may contain the
    separator, but looks like no row; above both names that this library documents one line may.
    """
    filled = [place for place, fields in enumerate(head) if any(map(str.strip, fields))]
    if not filled:
        return 0
    first, usual = filled[0], Counter(len(head[place]) for place in filled).most_common(1)[0][0]
    surely = next((place for place, fields in enumerate(head) if names_surely(fields, reading)), None)
    alike = sum(_is_row_like(fields, usual) for fields in head[:surely])
    if surely is not None and alike <= int(_documented(head[surely])):
        return surely
    if not quotes or is_usual_name(head[first][0]):
        return first
    below = [place for place in filled if any(map(str.strip, head[place][1:]))]
    if not below or len(head[below[0]]) != usual:
        return first
    filled_up = any(len(fields) > 1 for fields in head[: below[0]])
    every = all(place in below for place in filled if place > below[0])
    # of two columns, a text without a label looks like a title that is filled up
    told = any(map(is_usual_name, head[below[0]])) or (usual > 2 and every)
    return below[0] if told or not filled_up else first


def names_surely(fields: Sequence[str], reading: Reading) -> bool:
    """Tell whether a line of several fields has both names that this library documents, or that of the texts."""
    names = [field.strip().lower() for field in fields]
    of_texts = {name.lower() for name in (reading.text_column, reading.trained_text) if name is not None}
    known = of_texts & _known(reading, names) & set(names)
    return len(fields) > 1 and (bool(known) or _documented(fields))


def _documented(fields: Sequence[str]) -> bool:
    """Tell whether a line has both names that this library documents."""
    names = {field.strip().lower() for field in fields}
    return bool(TEXTS & names and LABELS & names)


def _is_row_like(fields: Sequence[str], usual: int) -> bool:
    """Tell whether a line has the width of most rows, and more than one field that is not empty."""
    return len(fields) == usual and sum(bool(field.strip()) for field in fields) > 1
