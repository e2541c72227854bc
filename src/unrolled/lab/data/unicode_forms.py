"""Tell a user that words of the training texts are read in another of Unicode's forms than they are written in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

from unrolled.lab.data.corpus import Brackets, Corpus, Examples, Question, SentencePair
from unrolled.lab.data.vocabulary import compose

__all__ = ["note_of_forms"]

_LINES = 1000  # of running text, which may be larger than memory


def note_of_forms(corpus: Corpus[Any]) -> Iterator[str]:
    """Say how many different words have accents that are characters of their own; of running text by its first lines.

    Example:
        >>> from unrolled.lab.data.corpus import Stream, Words
        >>> text = Stream(lambda: iter([["cafe\N{COMBINING ACUTE ACCENT}", "<eos>"]]))
        >>> list(note_of_forms(Words(name="text", train=text, dev=text, test=text)))[0][:37]
        'text: 1 word of the training text is '
    """
    if isinstance(corpus, Brackets):
        return
    texts = _texts(corpus) if isinstance(corpus, Examples) else islice(corpus.train, _LINES)
    found: dict[str, None] = {}
    for text in texts:
        if isinstance(text, str):  # a line of characters
            found.update(dict.fromkeys(word for word in text.split() if compose(word) != word))
        elif (same := compose(text)) is not text:
            found.update((word, None) for word, other in zip(text, same, strict=True) if word != other)
    if found:
        words = "1 word" if len(found) == 1 else f"{len(found):,} words"
        verb = "is" if len(found) == 1 else "are"
        yield (
            f"{corpus.name}: {words} of the training text {verb} not written in Unicode's form NFC, such as "
            f"{next(iter(found))!a}; read as if in NFC, here and in every text for this model"
        )


def _texts(corpus: Examples[Any]) -> Iterator[Sequence[str]]:
    """Yield the tokens of all training texts."""
    for example in corpus.train:
        match example:
            case SentencePair():
                yield from (example.source, example.target)
            case Question():
                yield from chain([example.tokens], (each.tokens for each in example.candidates))
            case _:
                yield example.tokens
