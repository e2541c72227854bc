"""Penn Treebank in Mikolov's preprocessing: news as words or characters.

A sentence a line, lower-cased, numbers as ``N``, rare words as ``<unk>``. The end of a line is a token, ``<eos>``:
929,589 / 73,760 / 82,430 words of 10,000 types, as published.

In the files of characters a space is written ``_``, ``<unk>`` is five characters, and a line has no space at its end.
With one ``<eos>`` a line there are 5,017,482 / 393,042 / 442,423 characters of 50 types. Papers that report 5,059k
count a space at each line's end too, so their bits per character do not compare.

Source:
    Marcus, Santorini and Marcinkiewicz (1993), https://aclanthology.org/J93-2004; Mikolov et al. (2010), Recurrent
    neural network based language model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from unrolled.lab.data.corpus import Characters, Dataset, Stream, Words
from unrolled.lab.data.formats.text import word_lines
from unrolled.lab.data.text_files import find_file, iter_lines
from unrolled.lab.data.tokenise import split_at_spaces

__all__ = ["PennTreebank", "PennTreebankCharacters"]

_LICENCE = 'LDC text; of the preprocessed files their maker says they "should be free for research purposes"'
_CITATION = "Marcus, Santorini and Marcinkiewicz (1993), https://aclanthology.org/J93-2004; Mikolov et al. (2010)"


class PennTreebank(Dataset):
    """News as words."""

    name = "ptb"
    kind = Words
    description = "news, 10,000 word types: 929,589 / 73,760 / 82,430 words with <eos>"
    licence = _LICENCE
    citation = _CITATION

    def read(self, folder: Path | None = None) -> Words:
        """Find the files ``ptb/ptb.train.txt``, …; each pass over a stream reads one again."""
        train, dev, test = (_stream(f"ptb/ptb.{split}.txt", folder) for split in ("train", "valid", "test"))
        return Words(name=self.name, train=train, dev=dev, test=test)


class PennTreebankCharacters(Dataset):
    """News as characters."""

    name = "ptb-chars"
    kind = Characters
    description = "news, 50 characters: 5,017,482 / 393,042 / 442,423 with one <eos> a line"
    licence = _LICENCE
    citation = _CITATION

    def read(self, folder: Path | None = None) -> Characters:
        """Find the files ``ptb/ptb.char.train.txt``, …; each pass over a stream reads one again."""
        train, dev, test = (_stream(f"ptb/ptb.char.{split}.txt", folder) for split in ("train", "valid", "test"))
        return Characters(name=self.name, train=train, dev=dev, test=test)


def _stream(name: str, folder: Path | None) -> Stream:
    return Stream(partial(_lines, find_file(name, folder)))


def _lines(path: Path) -> Iterator[Sequence[str]]:
    # the files of characters end with a blank line that is not part of the text
    return word_lines((line for line in iter_lines(path) if line.strip()), split_at_spaces)
