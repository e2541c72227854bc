r"""AG News: the subject of a news item, from its title and its first sentences.

The published training set has 120,000 rows; only a part of it is read, so published results do not compare:

- ``ag_news/train_10k.csv``: 10,000 rows, ``"3","title","description"``;
- ``ag_news/train_extra_12k_joined.csv``: 12,000 more, ``"3","titledescription"``, with nothing between the two. Rows
  that are in the first file or occurred before are left out.

Training rows whose text is also in the test set are left out. A random tenth of the first file is the dev split of both
datasets.

A program that processed the texts lost some characters, which are restored: `` #39;`` was ``&#39;``, an apostrophe;
`` quot;`` and the like likewise; ``\$`` is a dollar sign and any other ``\`` a line end; ``&lt;b&gt;`` is an HTML tag,
which is removed.

Source:
    Zhang, Zhao and LeCun (2015), Character-level Convolutional Networks for Text Classification. arXiv:1509.01626
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from pathlib import Path

from unrolled.lab.data.corpus import Classification, Dataset, Example, hold_out
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.tables.dialect import read_records
from unrolled.lab.data.text_files import malformed
from unrolled.lab.data.tokenise import tokenise

__all__ = ["AgNews", "AgNewsExtended", "restore_text"]

_LABELS = ("world", "sports", "business", "science and technology")
_CODES = {"1": 0, "2": 1, "3": 2, "4": 3}
_ENTITY = re.compile(r"(?:^| )(#\d+|quot|amp|lt|gt|nbsp);")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


def restore_text(text: str) -> str:
    r"""Restore the characters that a news item lost.

    Example:
        >>> restore_text(r"Boeing #39;s  quot;deal quot; of\\$5 &lt;b&gt;...&lt;/b&gt;").split()
        ["Boeing's", '"deal"', 'of', '$5', '...']
    """
    text = html.unescape(_ENTITY.sub(r"&\1;", text))
    return _TAG.sub(" ", text).replace("\\$", " $").replace("\\", " ")


KeyedExample = tuple[str, Example]
"""A text without white space, which identifies it, and its example."""


class AgNews(Dataset):
    """The rows with a title and a description."""

    name = "ag_news"
    kind = Classification
    description = "news items of four subjects: 8,997 / 1,000 / 7,600, a part of the published training set"
    licence = "for research and any other non-commercial activity"
    citation = "Zhang, Zhao and LeCun (2015), arXiv:1509.01626"

    def read(self, folder: Path | None = None) -> Classification:
        """Read the rows; the rows of :meth:`_further` join the training split."""
        test = _read(find_file("ag_news/test.csv", folder), ("title", "description"))
        tested = {key for key, _ in test}
        rows = [
            row
            for row in _read(find_file("ag_news/train_10k.csv", folder), ("title", "description"))
            if row[0] not in tested
        ]
        train, dev = hold_out(rows, round(len(rows) / 10), lambda row: (row[1].label,))
        train += self._further(folder, tested | {key for key, _ in rows})
        return Classification(
            name=self.name, labels=_LABELS, train=_without_keys(train), dev=_without_keys(dev), test=_without_keys(test)
        )

    def _further(self, folder: Path | None, known: set[str]) -> list[KeyedExample]:
        """Return more training rows, none of them known."""
        return []


class AgNewsExtended(AgNews):
    """The same and, in the training split, the rows whose title is joined to the description."""

    name = "ag_news_extended"
    description = "news items of four subjects: 18,550 / 1,000 / 7,600, a larger part of the published training set"

    def _further(self, folder: Path | None, known: set[str]) -> list[KeyedExample]:
        rows = []
        for key, example in _read(find_file("ag_news/train_extra_12k_joined.csv", folder), ("text",)):
            if key not in known:
                known.add(key)
                rows.append((key, example))
        return rows


def _without_keys(rows: Iterable[KeyedExample]) -> tuple[Example, ...]:
    return tuple(example for _, example in rows)


def _read(path: Path, columns: tuple[str, ...]) -> list[KeyedExample]:
    """Read the rows of a file; texts that differ only in white space have the same key."""
    rows = []
    for number, fields in read_records(path):
        code, *texts = fields or [""]
        if code not in _CODES or len(texts) != len(columns):
            expected = f"a class from 1 to 4, {', '.join(columns)}"
            raise malformed(path, number, expected, repr(",".join(fields)), "check that the file is complete")
        text = " ".join(map(restore_text, texts))
        rows.append(("".join(text.split()), Example(tuple(tokenise(text)), _CODES[code])))
    return rows
