"""Synthetic corpora of every kind, from small grammars, for experiments at scale ``smoke`` and for tests.

What is to be predicted is a function of the text, so each corpus can be learned perfectly. No example occurs twice, so
dev and test hold nothing that was trained on. The same seed gives the same corpus.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import (
    Brackets,
    Candidate,
    Characters,
    Classification,
    Corpus,
    Example,
    Question,
    RatedText,
    Regression,
    Relations,
    Selection,
    SentencePair,
    Stream,
    TaggedSentence,
    Tagging,
    Translation,
    Words,
)
from unrolled.lab.data.datasets.negation import NegationReviews
from unrolled.lab.papers.framework.corpora import SMALL, Sizes, draw_unique_splits

__all__ = [
    "SYNTHETIC",
    "Sizes",
    "answers",
    "brackets",
    "characters",
    "entities",
    "negation",
    "ratings",
    "relations",
    "topics",
    "translations",
    "words",
]


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


_TOPICS = {
    "World": "minister army border treaty embassy parliament",
    "Sports": "striker coach stadium goalkeeper league referee",
    "Business": "bank share market merger profit investor",
    "Sci/Tech": "telescope software virus satellite chip laboratory",
}
_TIMES = ("on monday", "last week", "in spring", "at noon", "this year", "once more", "at last", "after all")
_RATED = {"superb": 1.0, "good": 0.6, "decent": 0.2, "weak": -0.2, "bad": -0.6, "dreadful": -1.0}
_DEGREES = {"": 0.6, "very": 1.0, "slightly": 0.3, "not": -0.5}
_PARTS = ("plot", "cast", "music", "ending", "dialogue", "pace")
_BETWEEN = {
    "Cause-Effect(e1,e2)": ("caused", "led to"),
    "Cause-Effect(e2,e1)": ("was caused by", "came from"),
    "Component-Whole(e1,e2)": ("is part of", "belongs to"),
    "Component-Whole(e2,e1)": ("contains", "consists of"),
    "Other": ("resembles", "stood beside"),
}
_THINGS = ("engine", "storm", "wheel", "fire", "house", "noise", "machine", "crack", "roof", "flood")
_FIRST = ("anna", "boris", "clara", "david", "emma", "felix", "greta", "henry")
_LAST = ("wells", "lincoln", "houston", "darwin", "florence", "sydney", "carson", "orlando")
_FACTS = {
    "live": ("where does {} live ?", "{} lives in {} ."),
    "work": ("where does {} work ?", "{} works at {} ."),
    "come": ("where does {} come from ?", "{} comes from {} ."),
    "learn": ("where did {} go to school ?", "{} went to school in {} ."),
}


def topics(sizes: Sizes = SMALL, seed: int = 0) -> Classification:
    """Make news of four topics; the nouns tell which."""

    def draw(generator: random.Random) -> Example:
        label = generator.randrange(len(_TOPICS))
        who, what = generator.sample(list(_TOPICS.values())[label].split(), 2)
        verb = generator.choice(("meets", "helps", "follows", "changes", "awaits"))
        text = f"{generator.choice(_TIMES)} , the {who} {verb} the {what} {generator.choice(_TIMES)}"
        return Example(tuple(text.split()), label)

    return Classification(name="made-up topics", labels=tuple(_TOPICS), **draw_unique_splits(draw, sizes, seed))


def negation(sizes: Sizes = SMALL, seed: int = 0) -> Classification:
    """Take a part of the negation corpus: films that are "not not charming".

    Raises:
        UsageError: If a split has fewer sentences; the corpus has 4,120, 200 and 200.
    """
    whole = NegationReviews(seed=seed).read()
    splits = whole.splits
    for (name, split), size in zip(splits.items(), sizes, strict=True):
        if size > len(split):
            raise UsageError(f"{size} sentences were asked for; the negation corpus has {len(split)} for {name}")
        splits[name] = split[:size]
    return Classification(name="made-up negation", labels=whole.labels, **splits)


def ratings(sizes: Sizes = SMALL, seed: int = 0) -> Regression:
    """Make reviews with a rating from -1 to 1: the mean of what is said of two parts of a film."""

    def draw(generator: random.Random) -> RatedText:
        rating, said = 0.0, []
        for part in generator.sample(_PARTS, 2):
            (degree, factor), (adjective, value) = (
                generator.choice(list(table.items())) for table in (_DEGREES, _RATED)
            )
            said.append(f"the {part} is {degree} {adjective}")
            rating += factor * value / 2
        return RatedText(tuple(" and ".join(said).split()), round(rating, 6))

    return Regression(name="made-up ratings", **draw_unique_splits(draw, sizes, seed))


def relations(sizes: Sizes = SMALL, seed: int = 0) -> Relations:
    """Make two relations between things, in both directions, and others; the words in between tell which."""
    labels = tuple(_BETWEEN)

    def draw(generator: random.Random) -> Example:
        label = generator.randrange(len(labels))
        one, other = generator.sample(_THINGS, 2)
        between = generator.choice(_BETWEEN[labels[label]])
        text = f"{generator.choice(_TIMES)} the <e1> {one} </e1> {between} the <e2> {other} </e2> ."
        return Example(tuple(text.split()), label)

    return Relations(name="made-up relations", labels=labels, **draw_unique_splits(draw, sizes, seed))


def entities(sizes: Sizes = SMALL, seed: int = 0) -> Tagging:
    """Make persons, places and firms that share their names; the words beside a name tell which. Spans are IOBES."""

    def draw(generator: random.Random) -> TaggedSentence:
        first, (one, two, three, four) = generator.choice(_FIRST), generator.sample(_LAST, 4)
        person = generator.choice((f"mr/O {one}/S-PER", f"{first}/B-PER {one}/E-PER"))
        place = generator.choice((f"in/O {two}/S-LOC", f"at/O lake/B-LOC {two}/E-LOC"))
        firm = generator.choice((f"{three}/B-ORG bank/E-ORG", f"{three}/B-ORG &/I-ORG {four}/I-ORG ltd/E-ORG"))
        order = generator.choice(("{0} left/O {1} {2}", "{1} met/O {0} {2}", "{2} ,/O {0} joined/O {1}"))
        pairs = [word.rpartition("/") for word in order.format(person, firm, place).split()]
        return TaggedSentence(tuple(word for word, _, _ in pairs), tuple(tag for _, _, tag in pairs))

    return Tagging(name="made-up entities", spans=True, **draw_unique_splits(draw, sizes, seed))


def answers(sizes: Sizes = SMALL, seed: int = 0, candidates: int = 5) -> Selection:
    """Make questions; only the right candidate is about the same person and the same matter.

    Args:
        sizes: Number of examples of each split.
        seed: Seed of the generator that draws the questions.
        candidates: Number of candidates of each question, 2 to 32.

    Raises:
        UsageError: If there cannot be so many candidates.
    """
    facts = [(person, matter) for person in _FIRST for matter in _FACTS]
    if not 2 <= candidates <= len(facts):
        raise UsageError(f"{candidates} candidates were asked for; expected 2 to {len(facts)}")

    def draw(generator: random.Random) -> Question:
        chosen = generator.sample(facts, candidates)
        person, matter = right = generator.choice(chosen)
        said = [(_FACTS[what][1].format(who, generator.choice(_LAST)), (who, what) == right) for who, what in chosen]
        question = _FACTS[matter][0].format(person)
        return Question(tuple(question.split()), tuple(Candidate(tuple(text.split()), is_it) for text, is_it in said))

    return Selection(name="made-up answers", **draw_unique_splits(draw, sizes, seed))


def brackets(sizes: Sizes = SMALL, seed: int = 0, kinds: int = 2, depth: int = 3, longest: int = 24) -> Brackets:
    """Draw well-formed strings of brackets.

    Args:
        sizes: Number of examples of each split.
        seed: Seed of the generator that draws the strings.
        kinds: Number of kinds of brackets, k.
        depth: Largest number of open brackets.
        longest: Largest number of brackets in a string; even.
    """

    def draw(generator: random.Random) -> tuple[int, ...]:
        string: list[int] = []
        opened: list[int] = []
        for left in range(2 * generator.randint(1, longest // 2), 0, -1):
            if not opened or (len(opened) < min(depth, left) and generator.random() < 0.5):
                opened.append(generator.randrange(kinds))
                string.append(opened[-1])
            else:
                string.append(kinds + opened.pop())
        return tuple(string)

    return Brackets(name="made-up brackets", kinds=kinds, depth=depth, **draw_unique_splits(draw, sizes, seed))


SYNTHETIC: Mapping[type[Corpus[Any]], Callable[[Sizes, int], Corpus[Any]]] = {
    Classification: negation,
    Regression: ratings,
    Relations: relations,
    Tagging: entities,
    Words: words,
    Characters: characters,
    Translation: translations,
    Selection: answers,
    Brackets: brackets,
}
"""For each kind of corpus a function that makes one up; :func:`topics` is a further one."""
