"""The sentences of a command that answers them one by one: words of the command line, or lines of standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from unrolled.cli.texts_of_users import check_encoded
from unrolled.errors import UsageError

__all__ = ["Numbered", "given_sentences"]

Numbered = tuple[int | None, str]
"""A sentence and the number of its line, which a sentence of the command line has not."""
_AT_ONCE = 64
"""Number of lines answered together, if standard input is not a terminal."""


def given_sentences(words: Sequence[str] | None) -> Iterator[list[Numbered]]:
    """Return the sentences, those together that are to be answered at once.

    Args:
        words: One sentence, word by word; or several, of which at least two have spaces. None or ``-`` alone stands for
            the lines of standard input.

    Raises:
        UsageError: If a word is in another encoding, or the sentences have no word.
    """
    if words and list(words) != ["-"]:
        for word in words:
            check_encoded(word)
        several = sum(len(word.split()) > 1 for word in words) > 1
        sentences = words if several else [" ".join(words)]
        if not any(sentence.split() for sentence in sentences):
            raise UsageError("the sentence is empty; give at least one word")
        return iter([[(None, sentence) for sentence in sentences]])
    return _lines()


def _lines() -> Iterator[list[Numbered]]:
    """Yield the lines of standard input: many at once, or one by one from a terminal."""
    from unrolled.lab.data.text_files import STANDARD_INPUT, checked_lines, standard_input_escaped

    size = 1 if sys.stdin.isatty() else _AT_ONCE
    lines: list[Numbered] = []
    for numbered in checked_lines(standard_input_escaped(), STANDARD_INPUT):
        lines.append(numbered)
        if len(lines) == size:
            yield lines
            lines = []
    if lines:
        yield lines
