"""Pairs of sentences of our own that a language model should tell apart: garden paths, pronouns, orders and words.

All are written for this file, in words of the Penn Treebank and without punctuation, as its text is. Two pairs that
the sources have as examples are marked there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["CHOICES", "GARDEN_PATHS", "TEXTS", "GardenPath", "Texts", "WordChoice"]


class GardenPath(NamedTuple):
    """A beginning that suggests a wrong reading, one that does not, and the word that excludes the wrong reading."""

    kind: str
    misleading: str
    control: str
    word: str


class WordChoice(NamedTuple):
    """Two beginnings that differ in one noun, and the word that continues each."""

    kind: str
    first: str
    second: str
    after_first: str
    after_second: str


class Texts(NamedTuple):
    """A text and a worse one: of the same words in another order, or with another word."""

    kind: str
    better: str
    worse: str


def _reduced(subject: str, who: str, rest: str, word: str) -> GardenPath:
    """Leave out "who was": the participle then looks like the main verb."""
    return GardenPath("reduced relative clause", f"{subject} {rest}", f"{subject} {who} {rest}", word)


def _complement(beginning: str, noun: str, word: str) -> GardenPath:
    """Leave out "that": the subject of the clause then looks like an object."""
    return GardenPath("clause without that", f"{beginning} {noun}", f"{beginning} that {noun}", word)


def _closure(beginning: str, verbs: tuple[str, str], noun: str, word: str) -> GardenPath:
    """Put a verb that takes an object before the subject of the next clause; the control's verb takes none."""
    misleading, control = (f"{beginning} {verb} {noun}" for verb in verbs)
    return GardenPath("subject after a verb", misleading, control, word)


GARDEN_PATHS: tuple[GardenPath, ...] = (
    _reduced("the bank", "that was", "offered a loan", "declined"),
    _reduced("the executive", "who was", "paid a bonus", "resigned"),
    _reduced("the lawyer", "who was", "sent the letter", "said"),
    _reduced("the investors", "who were", "told about the merger", "sold"),
    _reduced("the workers", "who were", "paid last week", "returned"),
    _reduced("the officials", "who were", "warned last month", "left"),
    _reduced("the firm", "that was", "asked for help", "refused"),
    _reduced("the airline", "that was", "sold last year", "lost"),
    _complement("the analyst believed", "the report", "was"),
    _complement("the judge found", "the evidence", "was"),
    _complement("the government confirmed", "the plan", "would"),
    _complement("the trader heard", "the news", "was"),
    _complement("the board understood", "the problem", "had"),
    _complement("the company announced", "the sale", "would"),
    _complement("the chairman knew", "the answer", "was"),
    _closure("when the company", ("sold", "collapsed"), "the unit", "was"),
    _closure("while the investors", ("bought", "waited"), "the stock", "fell"),
    _closure("after the group", ("left", "arrived"), "the country", "was"),
    _closure("because the workers", ("accept", "agree"), "the offer", "is"),
    _closure("before the president", ("signed", "appeared"), "the bill", "was"),
    _closure("if the airline", ("buys", "fails"), "the planes", "will"),
)


def _agreeing(kind: str, pattern: str, nouns: tuple[str, str], words: tuple[str, str]) -> WordChoice:
    first, second = (pattern.format(noun) for noun in nouns)
    return WordChoice(kind, first, second, *words)


def _pronouns() -> Iterator[WordChoice]:
    """List pronouns that agree with a noun at a small distance, and at a larger one with a noun between."""
    person, thing = ("she", "he"), ("it", "they")
    near, far, own = "pronoun, near", "pronoun, another noun between", "possessive or reflexive"
    yield _agreeing(near, "the {} said that", ("woman", "man"), person)
    yield _agreeing(near, "the {} said that", ("girl", "boy"), person)
    yield _agreeing(near, "his {} says that", ("mother", "father"), person)
    yield _agreeing(near, "the {} said that", ("company", "companies"), thing)
    yield _agreeing(near, "the {} announced that", ("bank", "banks"), thing)
    yield _agreeing(near, "the {} believed that", ("analyst", "analysts"), ("he", "they"))
    yield _agreeing(far, "the {} who met the president said that", ("woman", "man"), person)
    yield _agreeing(far, "my {} called the office because", ("sister", "brother"), person)
    yield _agreeing(far, "the {} of the chairman resigned when", ("daughter", "son"), person)
    yield _agreeing(far, "the {} with offices in the city said that", ("company", "companies"), thing)
    yield _agreeing(far, "the {} sold the bonds of the state after", ("bank", "banks"), thing)
    yield _agreeing(own, "the {} lost", ("woman", "man"), ("her", "his"))
    yield _agreeing(own, "the {} called", ("wife", "husband"), ("her", "his"))
    yield _agreeing(own, "the {} raised", ("company", "companies"), ("its", "their"))
    yield _agreeing(own, "the {} cut", ("airline", "airlines"), ("its", "their"))
    yield _agreeing(own, "the {} asked", ("woman", "man"), ("herself", "himself"))
    yield _agreeing(own, "the {} found", ("company", "companies"), ("itself", "themselves"))


def _meant() -> Iterator[WordChoice]:
    """List nouns of which only the meaning says what follows."""
    kind = "meaning"
    yield _agreeing(kind, "the box does not fit in the bag because the {} is too", ("box", "bag"), ("big", "small"))
    yield _agreeing(
        kind, "the company could not buy the bank because the {} was too", ("company", "bank"), ("small", "large")
    )
    yield _agreeing(kind, "the truck passed the bus because the {} was", ("truck", "bus"), ("fast", "slow"))
    yield _agreeing(
        kind, "the teacher helped the student because the {} was", ("teacher", "student"), ("strong", "weak")
    )


CHOICES: tuple[WordChoice, ...] = (*_pronouns(), *_meant())

TEXTS: tuple[Texts, ...] = (
    Texts("order", "the cat is small", "small is the cat"),  # CS 224D has "small the is cat"
    Texts("order", "the bank raised its rates", "the bank its rates raised"),
    Texts("order", "shares fell in heavy trading", "shares in heavy fell trading"),
    Texts("order", "he bought a new car", "he bought a car new"),
    Texts("order", "they will not sell the company", "they not will sell the company"),
    Texts("order", "profit rose sharply last year", "last profit rose year sharply"),
    Texts("order", "the head of the bank", "the bank of the head"),
    Texts("order", "she has never been there", "she never has there been"),
    Texts("order", "what did the company say", "what the company did say"),
    Texts("order", "a strong and stable economy", "strong a and economy stable"),
    Texts("word", "walking home after school", "walking house after school"),  # CS 224D
    Texts("word", "strong demand for cars", "powerful demand for cars"),
    Texts("word", "he made a decision", "he did a decision"),
    Texts("word", "they paid a high price", "they paid a long price"),
    Texts("word", "interest rates fell", "account rates fell"),
    Texts("word", "the company paid a dividend", "the company paid a division"),
    Texts("word", "they live in new york", "they live on new york"),
    Texts("word", "he depends on the government", "he depends of the government"),
    Texts("word", "the head of the company", "the face of the company"),
    Texts("word", "prices fell sharply", "prices fell highly"),
)
