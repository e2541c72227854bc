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
from typing import ClassVar

from unrolled.lab.data.corpus import Characters, Dataset, Stream, Words
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.formats.text import word_lines
from unrolled.lab.data.text_files import iter_lines
from unrolled.lab.data.tokenise import split_at_spaces

__all__ = ["PennTreebank", "PennTreebankCharacters"]


class _PennTreebank(Dataset):
    """The files ``ptb/PREFIX.train.txt``, ``PREFIX.valid.txt`` and ``PREFIX.test.txt``."""

    licence = 'LDC text; of the preprocessed files their maker says they "should be free for research purposes"'
    citation = "Marcus, Santorini and Marcinkiewicz (1993), https://aclanthology.org/J93-2004; Mikolov et al. (2010)"
    prefix: ClassVar[str]
    kind: ClassVar[type[Words | Characters]]

    def read(self, folder: Path | None = None) -> Words | Characters:
        """Find the files; each pass over a stream reads one again."""
        paths = [find_file(f"ptb/{self.prefix}.{split}.txt", folder) for split in ("train", "valid", "test")]
        train, dev, test = (Stream(partial(_lines, path)) for path in paths)
        return self.kind(name=self.name, train=train, dev=dev, test=test)


class PennTreebank(_PennTreebank):
    """News as words."""

    name = "ptb"
    kind = Words
    description = "news, 10,000 word types: 929,589 / 73,760 / 82,430 words with <eos>"
    prefix = "ptb"


class PennTreebankCharacters(_PennTreebank):
    """News as characters."""

    name = "ptb-chars"
    kind = Characters
    description = "news, 50 characters: 5,017,482 / 393,042 / 442,423 with one <eos> a line"
    prefix = "ptb.char"


def _lines(path: Path) -> Iterator[Sequence[str]]:
    # the files of characters end with a blank line that is not part of the text
    return word_lines((line for line in iter_lines(path) if line.strip()), split_at_spaces)
