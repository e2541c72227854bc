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
from functools import lru_cache

__all__ = ["tokenise"]

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
