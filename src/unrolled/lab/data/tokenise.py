"""Sentences to tokens, in the manner of the treebanks: ``don't`` -> ``do n't``, punctuation apart.

A network knows the words it was trained on, so a typed sentence must be cut as its training text was. The
Penn Treebank's conventions (kept by the Stanford Sentiment Treebank) are:

- negations and clitics are tokens of their own: ``is n't``, ``ca n't``, ``it 's``, ``they 're``, ``we 'll``;
- punctuation is cut off, but ``...``, ``--``, titles (``Mr.``), hyphens and slashes inside words, and numbers
  (``1,000.50``) stay whole;
- a quotation opens with back-ticks, two or one, and closes with apostrophes.

Text that is cut already comes back as it was, but for a few abbreviations.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from unrolled.errors import DataError

__all__ = ["CUT_ALREADY", "ENTITY_MARKERS", "line_tokeniser", "split_at_spaces", "tokenise", "tokenise_marked"]

_TITLES = r"(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc)\."
_DOTTED = r"(?:[a-z]\.){2,}"
_INITIAL = r"(?-i:[A-Z])\.(?=\s+\w)"
_WORD = r"[^\W_]+(?:(?:[-'/&*_]|(?<=\d)[.,:](?=\d))[^\W_]+)*"
_CLITICS = r"'(?:s|re|ve|ll|d|m)"
_ELISIONS = r"'(?:n'|(?:\d0s|em|til|n)\b)"
_TOKEN = re.compile(
    rf"\.{{2,}}|-{{2,}}|``|''|{_ELISIONS}|{_CLITICS}\b|(?<!\w)(?:{_TITLES}|{_DOTTED}|{_INITIAL})(?!\w)"
    rf"|{_WORD}|\S",
    re.IGNORECASE,
)
# Words that treebanks cut although nothing between the parts says so.
_JOINED = re.compile(r"(can)(not)|(gon|wan)(na)|(got)(ta)", re.IGNORECASE)
_CLITIC_END = re.compile(rf"(.+?)(n't|{_CLITICS})", re.IGNORECASE)
_OPENING_QUOTE = re.compile(rf"(?<!\S)(?!{_ELISIONS}|{_CLITICS}\b)'(?=\w)", re.IGNORECASE)


def tokenise(sentence: str) -> list[str]:
    """Cut a sentence as the treebanks do.

    Args:
        sentence: text as people type it, or tokens with spaces between them.

    Returns:
        The tokens, their case kept. An empty sentence has none.
    """
    sentence = _OPENING_QUOTE.sub("`", sentence.replace("’", "'"))
    words: list[str] = []
    quoted = False
    for word in _TOKEN.findall(sentence):
        if word == '"':
            quoted = not quoted
            words.append("``" if quoted else "''")
        else:
            words += _cut(word)
    return words


# Frequent words are cut once, and are one string in memory however often they occur.
@lru_cache(maxsize=2**16)
def _cut(word: str) -> tuple[str, ...]:
    """Cut a word that is several tokens: ``cannot`` -> ``can not``, ``couldn't've`` -> ``could n't 've``."""
    if parts := _JOINED.fullmatch(word):
        return tuple(filter(None, parts.groups()))
    clitics: list[str] = []
    while found := _CLITIC_END.fullmatch(word):
        word, clitic = found.groups()
        clitics.insert(0, clitic)
    return (word, *clitics)


CUT_ALREADY = frozenset({"tok", "tokens", "bpe"})
"""What the name of a file says whose tokens are separated by spaces: ``train.tok.de``, ``wiki.test.tokens``."""


def split_at_spaces(line: str) -> list[str]:
    """Cut a line at its spaces alone: other white space (a no-break space) may be part of a token.

    Args:
        line: without its end.

    Returns:
        The tokens.
    """
    return [token for token in line.split(" ") if token]


def line_tokeniser(path: Path) -> Callable[[str], list[str]]:
    """Choose how to cut the lines of a file.

    Args:
        path: its name tells.

    Returns:
        :func:`at_spaces` when a part of the name is one of :data:`CUT_ALREADY`, else
        :func:`~unrolled.lab.data.tokenise.tokenise`.

    Example:
        >>> cutter(Path("train.tok.de"))("that 's <unk>"), cutter(Path("train.de"))("that's it.")
        (['that', "'s", '<unk>'], ['that', "'s", 'it', '.'])
    """
    return tokenise if CUT_ALREADY.isdisjoint(path.name.split(".")) else split_at_spaces


ENTITY_MARKERS = ("<e1>", "</e1>", "<e2>", "</e2>")
_ORDERS = (ENTITY_MARKERS, (*ENTITY_MARKERS[2:], *ENTITY_MARKERS[:2]))
_MARKER = re.compile("|".join(ENTITY_MARKERS))
# The tokeniser cuts markers to pieces, so it is shown one sign for each, of those that Unicode leaves to us.
_SIGNS = {marker: chr(0xE000 + index) for index, marker in enumerate(ENTITY_MARKERS)}
_MARKERS = {sign: marker for marker, sign in _SIGNS.items()}
_NO_SIGNS = str.maketrans(dict.fromkeys(_MARKERS, " "))


def tokenise_marked(text: str) -> tuple[str, ...]:
    """Cut a text with two marked entities into tokens, each marker a token of its own.

    Args:
        text: with ``<e1>…</e1>`` and ``<e2>…</e2>`` in it, in either order.

    Returns:
        The tokens.

    Raises:
        DataError: when a marker is missing, repeated, misplaced, or has no word in it; the text says what was
            expected and found, but not where.
    """
    markers = tuple(_MARKER.findall(text))
    if markers not in _ORDERS:
        raise DataError(
            f"expected <e1>…</e1> and <e2>…</e2>, once each and apart, found {' '.join(markers) or 'no marker'}"
        )
    signed = _MARKER.sub(lambda marker: f" {_SIGNS[marker[0]]} ", text.translate(_NO_SIGNS))
    tokens = tuple(_MARKERS.get(token, token) for token in tokenise(signed))
    for begin, end in zip(markers[::2], markers[1::2], strict=True):
        if tokens.index(end) == tokens.index(begin) + 1:
            raise DataError(f"expected a word between {begin} and {end}, found none")
    return tokens
