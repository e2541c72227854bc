"""Tables whose columns are separated by tabs: ``text<TAB>label``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unrolled.lab.data.labelled_text import LabelledFormat, columns
from unrolled.lab.data.text_files import iter_lines, malformed

__all__ = ["Tsv"]


class Tsv(LabelledFormat):
    """One example a line, without quotes; a header may name the columns.

    Without a header a line is cut at its last tab, so that a text may have tabs itself.
    """

    name = "tsv"
    suffixes = (".tsv", ".tab")
    description = "text<TAB>label, one a line; or a header with the columns text and label"

    def fields(self, path: Path) -> Iterator[tuple[int, str, str]]:
        """Read the texts and labels as they are written.

        Args:
            path: one file.

        Yields:
            The line, the text, the label.

        Raises:
            DataError: when a line has no tab, or not as many as the header.
        """
        header: list[str] = []
        where: tuple[int, int] | None = None
        for number, line in enumerate(iter_lines(path), start=1):
            if number == 1 and (where := columns(path, line.split("\t"))):
                header = line.split("\t")
                continue
            if where:
                cells = line.split("\t")
                if len(cells) != len(header):
                    found = f"{len(cells)} in {line!r}"
                    raise malformed(path, number, f"{len(header)} columns", found, "as the header has")
                yield number, cells[where[0]], cells[where[1]]
            else:
                text, tab, label = line.rpartition("\t")
                if not tab:
                    raise malformed(path, number, "text<TAB>label", repr(line), "the two are separated by a tab")
                yield number, text, label
