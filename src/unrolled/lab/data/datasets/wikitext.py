"""WikiText: good and featured articles of Wikipedia as words.

A paragraph or heading a line, tokenised, with case, rare words as ``<unk>``, hyphens and signs inside numbers as
``@-@``, ``@,@`` and ``@.@``. The end of a line, also of a blank line, is a token, ``<eos>``: with it the numbers of
tokens are those published.

Source:
    Merity et al. (2017), Pointer Sentinel Mixture Models. arXiv:1609.07843
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from unrolled.lab.data.corpus import Dataset, Stream, Words
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.formats.text import word_lines
from unrolled.lab.data.text_files import iter_lines
from unrolled.lab.data.tokenise import split_at_spaces

__all__ = ["WikiText2", "WikiText103"]


class WikiText2(Dataset):
    """The small corpus."""

    name = "wikitext2"
    kind = Words
    description = "Wikipedia, 33,278 word types: 2,088,628 / 217,646 / 245,569 words with <eos>"
    licence = "CC BY-SA 3.0"
    citation = "Merity et al. (2017), arXiv:1609.07843"

    def read(self, folder: Path | None = None) -> Words:
        """Find ``train.txt``, ``valid.txt`` and ``test.txt`` in the dataset's folder; each pass reads one again."""
        paths = [find_file(f"{self.name}/{split}.txt", folder) for split in ("train", "valid", "test")]
        train, dev, test = (Stream(partial(_lines, path)) for path in paths)
        return Words(name=self.name, train=train, dev=dev, test=test)


class WikiText103(WikiText2):
    """The large corpus: the same dev and test articles, and fifty times the training text."""

    name = "wikitext103"
    description = "Wikipedia, 267,735 word types: 103,227,021 / 217,646 / 245,569 words with <eos>"


def _lines(path: Path) -> Iterator[Sequence[str]]:
    return word_lines(iter_lines(path), split_at_spaces)
