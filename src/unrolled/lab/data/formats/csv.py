"""Tables whose columns are separated by commas, with quotes where a text has commas itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unrolled.lab.data.csv_records import iter_records
from unrolled.lab.data.labelled_text import LabelledFormat, columns
from unrolled.lab.data.text_files import malformed

__all__ = ["Csv"]


class Csv(LabelledFormat):
    """Comma-separated values as RFC 4180 describes them; a quoted field may have commas, quotes and line ends.

    A header may name the columns; without one there are two, the text and the label.
    """

    name = "csv"
    suffixes = (".csv",)
    description = (
        'text,label with quotes where needed: "fine, really",good; or a header with the columns text and label'
    )

    def fields(self, path: Path) -> Iterator[tuple[int, str, str]]:
        """Read the texts and labels as they are written.

        Args:
            path: one file.

        Yields:
            The line an example begins at, the text, the label.

        Raises:
            DataError: when a line has not as many columns as the header, or, without one, not two.
        """
        header: list[str] = []
        where = (0, 1)
        for number, cells in iter_records(path):
            if number == 1 and (named := columns(path, cells)):
                header, where = cells, named
                continue
            width = len(header) or 2
            if len(cells) != width:
                expected = f"{width} columns, as in the header" if header else "text,label"
                hint = "a text, or a label, with commas stands in quotes"
                raise malformed(path, number, expected, repr(",".join(cells)), hint)
            yield number, cells[where[0]], cells[where[1]]
