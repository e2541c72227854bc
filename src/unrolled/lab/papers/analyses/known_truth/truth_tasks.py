"""Tasks whose right explanation is known: functions of a text, with the words that decide each answer.

The words that decide are the *reason*: the smallest set of places such that the answer stays, whichever of the other
words are replaced by the blank word. Texts are drawn so that there is only one such set; a test finds it by trying all
sets. The last task, brackets, is the exception: there the reason is the bracket on top of the stack.

Words are numbers: 0 is padding, 2 is the blank word, 3 to 5 are words without a role, and from 6 on there are words
that count.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["BLANK", "ROLES", "TASKS", "VOCABULARY", "Case", "TruthTask"]

BLANK, ROLES = 2, 6
VOCABULARY = 14
"""Number of words, padding included."""
_FILLERS = (BLANK, 3, 4, 5)
_A, _B, _C, _D = range(ROLES, ROLES + 4)
_VALUES = (_A, _B, _C, _D)
_KEYS = range(ROLES + 4, ROLES + 8)
_MARK = ROLES + 4


@dataclass(frozen=True)
class Case:
    """A text, and the places that decide its answer; None where no single set does."""

    words: tuple[int, ...]
    reason: frozenset[int] | None


@dataclass(frozen=True)
class TruthTask:
    """A function of a text, and a source of texts."""

    name: str
    classes: int
    answer: Callable[[Sequence[int]], int]
    draw: Callable[[random.Random], Case]


def _filled(places: Iterable[tuple[int, int]], length: int, rng: random.Random) -> tuple[int, ...]:
    """Write words at some places of a text of words without a role."""
    words = rng.choices(_FILLERS, k=length)
    for place, word in places:
        words[place] = word
    return tuple(words)


def _places(count: int, length: int, rng: random.Random) -> list[int]:
    return sorted(rng.sample(range(length), count))


def _keyword(rng: random.Random) -> Case:
    places = _places(rng.choice((0, 1, 1)), 12, rng)
    return Case(_filled([(place, _A) for place in places], 12, rng), frozenset(places) or None)


def _both(rng: random.Random) -> Case:
    one, other = rng.sample(range(12), 2)
    words = rng.choice(((_A, _B), (_A, _B), (_A, _A), (_B, _B), (_A, _C)))
    reason = frozenset((one, other)) if words == (_A, _B) else None
    return Case(_filled(zip((one, other), words, strict=True), 12, rng), reason)


def _bigram(rng: random.Random) -> Case:
    place = rng.randrange(11)
    words = list(_filled([(place, _A), (place + 1, _B)], 12, rng))
    others = [p for p in range(12) if p not in range(place - 1, place + 3)]
    first = rng.choice(others)
    words[first] = rng.choice((_A, _B))
    apart = [p for p in others if abs(p - first) > 1]
    if apart:
        words[rng.choice(apart)] = rng.choice((_A, _B))
    reason: frozenset[int] | None = frozenset((place, place + 1))
    if rng.random() < 0.5:
        words[place], words[place + 1] = rng.choice(((_B, _A), (_A, 3), (4, _B)))
        reason = None
    return Case(tuple(words), reason)


def _order(rng: random.Random) -> Case:
    places = _places(2, 12, rng)
    forward = rng.random() < 0.5
    words = (_A, _B) if forward else (_B, _A)
    return Case(_filled(zip(places, words, strict=True), 12, rng), frozenset(places) if forward else None)


_NOT, _GOOD, _BAD = _A, _B, _C


def _negation(rng: random.Random) -> Case:
    place, negated, adjective = rng.randrange(1, 12), rng.random() < 0.5, rng.choice((_GOOD, _BAD, _GOOD, _BAD, 3))
    words = list(_filled([(place, adjective)], 12, rng))
    if negated:
        words[place - 1] = _NOT
    away = [p for p in range(12) if abs(p - place) > 1]
    words[rng.choice(away)] = _NOT  # this one negates nothing
    reason = frozenset((place - 1, place) if negated else (place,))
    return Case(tuple(words), None if adjective == 3 else reason)


def _sentiment(words: Sequence[int]) -> int:
    for place, word in enumerate(words):
        if word in (_GOOD, _BAD):
            negated = place > 0 and words[place - 1] == _NOT
            return int((word == _GOOD) != negated)
    return 2


def _first(length: int) -> Callable[[random.Random], Case]:
    def draw(rng: random.Random) -> Case:
        words = rng.choices((*_VALUES, BLANK), k=length)
        return Case(tuple(words), None if words[0] == BLANK else frozenset((0,)))

    return draw


def _value(word: int) -> int:
    return _VALUES.index(word) if word in _VALUES else len(_VALUES)


def _last_write(rng: random.Random) -> Case:
    places = _places(rng.choice((1, 2, 3, 4)), 12, rng)
    last = rng.choice(_VALUES)
    earlier = [value for value in _VALUES if value != last]
    values = [*rng.choices(earlier, k=len(places) - 1), last]
    return Case(_filled(zip(places, values, strict=True), 12, rng), frozenset(places[-1:]))


def _written(words: Sequence[int]) -> int:
    return next((_value(word) for word in reversed(words) if word in _VALUES), len(_VALUES))


def _marked(rng: random.Random) -> Case:
    words = rng.choices(_VALUES, k=12)
    place = rng.randrange(11)
    if rng.random() < 0.1:
        return Case(tuple(words), None)
    words[place] = _MARK
    return Case(tuple(words), frozenset((place, place + 1)))


def _after_mark(words: Sequence[int]) -> int:
    return _value(words[words.index(_MARK) + 1]) if _MARK in words[:-1] else len(_VALUES)


def _recall(rng: random.Random) -> Case:
    keys, values = rng.sample(_KEYS, 3), rng.choices(_VALUES, k=3)
    asked = rng.randrange(3)
    words = [word for pair in zip(keys, values, strict=True) for word in pair]
    if rng.random() < 0.1:
        (missing,) = set(_KEYS) - set(keys)
        return Case((*words, missing), None)
    return Case((*words, keys[asked]), frozenset((2 * asked, 2 * asked + 1, 6)))


def _recalled(words: Sequence[int]) -> int:
    pairs = dict(zip(words[:-1:2], words[1:-1:2], strict=True))
    return _value(pairs.get(words[-1], BLANK)) if words[-1] in _KEYS else len(_VALUES)


def _count(rng: random.Random) -> Case:
    places = _places(rng.choice((1, 2, 2, 3, 3, 3, 4)), 12, rng)
    return Case(_filled([(p, _A) for p in places], 12, rng), frozenset(places) if len(places) == 3 else None)


def _parity(rng: random.Random) -> Case:
    places = _places(rng.randint(0, 5), 8, rng)
    return Case(_filled([(p, _A) for p in places], 8, rng), frozenset(places) or None)


def _ends(rng: random.Random) -> Case:
    words = rng.choices(_VALUES, k=12)
    if rng.random() < 0.5:
        words[-1] = words[0]
    return Case(tuple(words), frozenset((0, 11)) if words[0] == words[-1] else None)


def _adjacent(words: Sequence[int]) -> int:
    return int((_A, _B) in pairwise(words))


def _in_order(words: Sequence[int]) -> int:
    return int(_A in words and _B in words[words.index(_A) :])


def _fourth_last(rng: random.Random) -> Case:
    return Case(tuple(rng.choices(_VALUES, k=12)), frozenset((8,)))


def _brackets(rng: random.Random) -> Case:
    """A string of brackets of two kinds, 6 and 7, closed by 8, with at most four open; the top one is the reason."""
    words: list[int] = []
    stack: list[int] = []
    while len(words) < 12:
        last = len(stack) == 1 and len(words) == 11  # one bracket stays open
        if not stack or last or (len(stack) < 4 and rng.random() < 0.5):
            stack.append(len(words))
            words.append(rng.choice((_A, _B)))
        else:
            stack.pop()
            words.append(_C)
    return Case(tuple(words), frozenset(stack[-1:]))


def _top(words: Sequence[int]) -> int:
    stack: list[int] = []
    for word in words:
        if word == _C:
            if stack:
                stack.pop()
        elif word in (_A, _B):
            stack.append(word - _A)
    return stack[-1] if stack else 2


TASKS: dict[str, TruthTask] = {
    task.name: task
    for task in (
        TruthTask("keyword", 2, lambda words: int(_A in words), _keyword),
        TruthTask("two words in any order", 2, lambda words: int(_A in words and _B in words), _both),
        TruthTask("bigram", 2, _adjacent, _bigram),
        TruthTask("two words in order", 2, _in_order, _order),
        TruthTask("negation", 3, _sentiment, _negation),
        TruthTask("first word of 12", 5, lambda words: _value(words[0]), _first(12)),
        TruthTask("first word of 40", 5, lambda words: _value(words[0]), _first(40)),
        TruthTask("last write", 5, _written, _last_write),
        TruthTask("word after a mark", 5, _after_mark, _marked),
        TruthTask("associative recall", 5, _recalled, _recall),
        TruthTask("at least three", 2, lambda words: int(words.count(_A) >= 3), _count),
        TruthTask("parity", 2, lambda words: words.count(_A) % 2, _parity),
        TruthTask("first equals last", 2, lambda words: int(words[0] == words[-1] != BLANK), _ends),
        TruthTask("fourth last word", 5, lambda words: _value(words[-4]), _fourth_last),
        TruthTask("open bracket", 3, _top, _brackets),
    )
}
