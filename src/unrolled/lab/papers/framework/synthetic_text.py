"""Synthetic clauses - a subject, a verb that agrees with it, an object - as running text and with translations."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from unrolled.lab.data.corpus import Characters, SentencePair, Stream, Translation, Words
from unrolled.lab.papers.framework.unique_splits import SMALL, Sizes, draw_unique_splits

__all__ = ["characters", "translations", "words"]

Line = tuple[str, ...]

_ADJECTIVES = ("", "old", "young", "quiet", "clever", "hungry")
_NOUNS = ("cat", "dog", "farmer", "child", "mouse", "teacher", "bird")
_PLURALS = {"child": "children", "mouse": "mice"}
_SPEAKERS = ("anna", "boris", "clara", "david")
_VERBS = ("see", "chase", "know", "love", "hear")


@dataclass(frozen=True)
class _Clause:
    """One of 35,280 statements, in parts."""

    subject: tuple[str, ...]
    verb: str
    object: tuple[str, ...]

    @classmethod
    def draw(cls, generator: random.Random) -> Self:
        """Draw a clause."""
        (subject, plural), (other, _) = _phrase(generator), _phrase(generator)
        verb = generator.choice(_VERBS)
        return cls(subject, verb if plural else f"{verb}s", other)

    def words(self) -> tuple[str, ...]:
        """Write the clause.

        Returns:
            Its words in order.
        """
        return (*self.subject, self.verb, *self.object)


def _phrase(generator: random.Random) -> tuple[tuple[str, ...], bool]:
    """Draw a noun with what stands before it, and tell whether it is plural."""
    plural, noun = generator.random() < 0.5, generator.choice(_NOUNS)
    form = _PLURALS.get(noun, f"{noun}s") if plural else noun
    return tuple(f"the {generator.choice(_ADJECTIVES)} {form}".split()), plural


def words(sizes: Sizes = SMALL, seed: int = 0) -> Words:
    """Make sentences whose verb agrees with its subject, as words; ``<eos>`` ends a line."""
    train, dev, test = _streams(lambda generator: (*_Clause.draw(generator).words(), ".", "<eos>"), sizes, seed)
    return Words(name="made-up words", train=train, dev=dev, test=test)


def characters(sizes: Sizes = SMALL, seed: int = 0) -> Characters:
    """Make sentences, some of them quoted speech, as characters; a line break ends a line."""

    def draw(generator: random.Random) -> Line:
        clause, speaker = " ".join(_Clause.draw(generator).words()), generator.choice(_SPEAKERS)
        return tuple(generator.choice((f"{clause}.\n", f'"{clause}," said {speaker}.\n')))

    train, dev, test = _streams(draw, sizes, seed)
    return Characters(name="made-up characters", train=train, dev=dev, test=test)


def _streams(draw: Callable[[random.Random], Line], sizes: Sizes, seed: int) -> list[Stream]:
    """Draw lines of running text, no two alike."""

    def stream(lines: Sequence[Line]) -> Stream:
        return Stream(lambda: iter(lines))

    return [stream(lines) for lines in draw_unique_splits(draw, sizes, seed).values()]


def translations(sizes: Sizes = SMALL, seed: int = 0) -> Translation:
    """Make sentences and translate them into a language that spells backwards and puts the verb last."""

    def draw(generator: random.Random) -> SentencePair:
        clause = _Clause.draw(generator)
        return SentencePair(
            clause.words(), tuple(word[::-1] for word in (*clause.subject, *clause.object, clause.verb))
        )

    return Translation(name="made-up translations", **draw_unique_splits(draw, sizes, seed))
