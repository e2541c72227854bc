"""Split text into tokens, in the manner of the treebanks: ``don't`` becomes ``do n't``, punctuation is split off.

A model knows the words of its training text, so a typed sentence must be split as that text was. The conventions of
the Penn Treebank, which the Stanford Sentiment Treebank keeps, are:

- Negations and clitics are tokens of their own: ``is n't``, ``ca n't``, ``it 's``, ``they 're``, ``we 'll``.
- Punctuation is split off, except ``...``, ``--``, titles (``Mr.``), hyphens and slashes inside words, and numbers
  (``1,000.50``).
- An opening quotation mark becomes one or two back-ticks, a closing one becomes one or two apostrophes.

Two more for texts of other languages: a combining mark or an invisible joiner stays with the letter or sign before it,
and each letter of Chinese and Japanese, which are written without spaces, is a token.

Text that is already split stays as it is, except for a few abbreviations.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container
from functools import lru_cache
from pathlib import Path

from unrolled.errors import DataError

__all__ = ["ENTITY_MARKERS", "line_tokeniser", "split_at_spaces", "tokenise", "tokenise_marked", "tokenise_unknown"]

_TITLES = r"(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc)\."
_DOTTED = r"(?:[a-z]\.){2,}"
_INITIAL = r"(?-i:[A-Z])\.(?=\s+\w)"
_MARKS = "".join(letter for letter in map(chr, range(0x300, 0x1F000)) if unicodedata.category(letter)[0] == "M")
_JOINER = "\u200d"
_KEPT = f"[{_MARKS}\u00ad\u200c{_JOINER}\U0001f3fb-\U0001f3ff]"  # soft hyphen, joiners, tones of skin
_UNSPACED = "\u3005-\u3007\u3041-\u30ff\uff66-\uff9f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Python takes a mark for no letter. The possessive signs keep the nested repetition from trying all splits.
_LETTERS = rf"(?:[^\W_{_UNSPACED}]++{_KEPT}*+)++"
_WORD = rf"{_LETTERS}(?:(?:[-'/&*_]|(?<=\d)[.,:](?=\d)){_LETTERS})*"
_SIGN = rf"[\U0001f1e6-\U0001f1ff]{{2}}|\S(?:{_KEPT}|(?<={_JOINER})\S)*"  # a flag is two letters
_CLITICS = r"'(?:s|re|ve|ll|d|m)"
_ELISIONS = r"'(?:n'|(?:\d0s|em|til|n)\b)"
_TOKEN = re.compile(
    rf"\.{{2,}}|-{{2,}}|``|''|{_ELISIONS}|{_CLITICS}\b|(?<!\w)(?:{_TITLES}|{_DOTTED}|{_INITIAL})(?!\w)"
    rf"|{_WORD}|{_SIGN}",
    re.IGNORECASE,
)
# Words that treebanks split although no sign separates the parts.
_JOINED = re.compile(r"(can)(not)|(gon|wan)(na)|(got)(ta)", re.IGNORECASE)
_CLITIC_END = re.compile(rf"(.+?)(n't|{_CLITICS})", re.IGNORECASE)
_OPENING_QUOTE = re.compile(rf"(?<!\S)(?!{_ELISIONS}|{_CLITICS}\b)'(?=\w)", re.IGNORECASE)


def tokenise(sentence: str, quoted: bool = False) -> list[str]:
    """Split a sentence, typed or already split at spaces, into tokens. Their case is kept.

    ``quoted`` says whether a double quotation mark is open before it.
    """
    sentence = _OPENING_QUOTE.sub("`", sentence.replace("’", "'"))
    words: list[str] = []
    for word in _TOKEN.findall(sentence):
        if word == '"':
            quoted = not quoted
            words.append("``" if quoted else "''")
        else:
            words += _split_clitics(word)
    return words


def tokenise_unknown(line: str, known: Container[str]) -> list[str]:
    """Split a line at spaces; a piece that is not known is split further, as :func:`tokenise` splits it in the line.

    Example:
        >>> tokenise_unknown('he said "no way" , <unk>', {"<unk>"})
        ['he', 'said', '``', 'no', 'way', "''", ',', '<unk>']
    """
    words: list[str] = []
    quoted = False
    for piece in line.split():
        if piece in known:
            words.append(piece)
        else:
            words += tokenise(piece, quoted)
            quoted ^= piece.count('"') % 2 == 1
    return words


# The cache splits frequent words once and keeps one string for all their occurrences.
@lru_cache(maxsize=2**16)
def _split_clitics(word: str) -> tuple[str, ...]:
    """Split a word that is several tokens: ``cannot`` -> ``can not``, ``couldn't've`` -> ``could n't 've``."""
    if parts := _JOINED.fullmatch(word):
        return tuple(filter(None, parts.groups()))
    clitics: list[str] = []
    while found := _CLITIC_END.fullmatch(word):
        word, clitic = found.groups()
        clitics.insert(0, clitic)
    return (word, *clitics)


_TOKENISED = frozenset({"tok", "tokens", "bpe"})  # train.tok.de, wiki.test.tokens


def split_at_spaces(line: str) -> list[str]:
    """Split a line at its plain spaces only: other white space, such as a no-break space, may be part of a token."""
    return [token for token in line.split(" ") if token]


def line_tokeniser(path: Path) -> Callable[[str], list[str]]:
    """Choose the tokeniser for the lines of a file by the file's name.

    It is :func:`split_at_spaces` if a part of the name is ``tok``, ``tokens`` or ``bpe``, else :func:`tokenise`.

    Example:
        >>> line_tokeniser(Path("train.tok.de"))("that 's <unk>"), line_tokeniser(Path("train.de"))("that's it.")
        (['that', "'s", '<unk>'], ['that', "'s", 'it', '.'])
    """
    return tokenise if _TOKENISED.isdisjoint(path.name.split(".")) else split_at_spaces


ENTITY_MARKERS = ("<e1>", "</e1>", "<e2>", "</e2>")
_ORDERS = (ENTITY_MARKERS, (*ENTITY_MARKERS[2:], *ENTITY_MARKERS[:2]))
_MARKER = re.compile("|".join(ENTITY_MARKERS))
# The tokeniser would split a marker, so it sees one character of Unicode's private use area in its place.
_SIGNS = {marker: chr(0xE000 + index) for index, marker in enumerate(ENTITY_MARKERS)}
_MARKERS = {sign: marker for marker, sign in _SIGNS.items()}
_NO_SIGNS = str.maketrans(dict.fromkeys(_MARKERS, " "))


def tokenise_marked(text: str) -> tuple[str, ...]:
    """Split a text that marks two entities with ``<e1>…</e1>`` and ``<e2>…</e2>``; each marker is a token.

    Raises:
        DataError: If a marker is missing, repeated or misplaced, or encloses no word. The error does not say where the
            text comes from.
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
