"""Synthetic corpora of every kind, from small grammars, for experiments at scale ``smoke`` and for tests.

What is to be predicted is a function of the text, so each corpus can be learned perfectly. No example occurs twice, so
dev and test hold nothing that was trained on. The same seed gives the same corpus.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

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
    TaggedSentence,
    Tagging,
    Translation,
    Words,
)
from unrolled.lab.data.datasets.negation import NegationReviews
from unrolled.lab.papers.framework.synthetic_text import characters, translations, words
from unrolled.lab.papers.framework.unique_splits import SMALL, Sizes, draw_unique_splits

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
        UsageError: when a split has fewer sentences; the corpus has 4,120, 200 and 200.
    """
    whole = NegationReviews(seed=seed).read()
    splits = {"train": whole.train, "dev": whole.dev, "test": whole.test}
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
        sizes: of the splits.
        seed: which questions.
        candidates: for each question, 2 to 32.

    Raises:
        UsageError: when there cannot be so many candidates.
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
        sizes: of the splits.
        seed: which strings.
        kinds: k.
        depth: m, the largest number of open brackets.
        longest: the largest number of brackets in a string; even.
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
