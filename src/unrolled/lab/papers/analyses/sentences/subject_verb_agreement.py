"""Sentences whose verb agrees with a distant subject, as in "the cats near the dog chase the bird".

Between subject and verb stand phrases with nouns of either number: "near the old dog", or "that the dogs hear", whose
verb agrees with its own subject. Other phrases carry no number: ", which looked very hungry ,", "often". The lecture's
"which was very hungry" would repeat the number and is left out. The nearest noun agrees with the verb by chance only,
so the subject alone decides the verb.

Source:
    CS 577, lecture 5, long-term dependencies; Linzen, Dupoux and Goldberg (2016), arXiv:1611.01368, for attractors.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

__all__ = ["VOCABULARY", "AgreementSentence"]

_NOUNS = {
    "cat": "cats", "dog": "dogs", "bird": "birds", "child": "children", "farmer": "farmers", "teacher": "teachers",
    "mouse": "mice", "king": "kings", "girl": "girls", "horse": "horses",
}  # fmt: skip
_VERBS = ("chase", "know", "love", "hear", "see", "follow", "help", "find")
_PLACES = ("near", "behind", "beside", "with")
_ADJECTIVES = ("old", "young", "quiet", "clever", "hungry")
_ADVERBS = ("often", "always", "rarely")
_FORMS = {verb: f"{verb}s" for verb in _VERBS}
"""The singular form of each verb, by its plural form."""
VOCABULARY = (
    "the", "that", ",", "which", "looked", "very", ".", *_NOUNS, *_NOUNS.values(), *_FORMS, *_FORMS.values(), *_PLACES,
    *_ADJECTIVES, *_ADVERBS,
)  # fmt: skip
"""Every word."""
_LENGTHS = (3, 4, 5, 6)  # of phrases that other phrases may follow


@dataclass(frozen=True)
class AgreementSentence:
    """A sentence and the place of its main verb."""

    words: tuple[str, ...]
    verb: int
    """Index of the main verb; the noun of its subject is the second word."""
    attracted: bool
    """Whether the noun nearest to the verb has the other number than the subject."""

    @property
    def plural(self) -> bool:
        """Whether subject and verb are plural."""
        return self.words[self.verb] in _FORMS

    @cached_property
    def forms(self) -> tuple[str, str]:
        """Both forms of the verb, the correct one first."""
        verb = self.words[self.verb]
        return (verb, _FORMS[verb]) if self.plural else (verb, verb.removesuffix("s"))

    @classmethod
    def draw(cls, distance: int, generator: random.Random) -> Self:
        """Draw a sentence of ``distance`` + 6 words, ``distance`` of them between the subject's noun and its verb."""
        plural = generator.random() < 0.5
        nearest, between = plural, list[str]()
        while (left := distance - len(between)) > 2:
            size = generator.choice([length for length in _LENGTHS if length <= left])
            phrase, number = _phrase(size, generator)
            between += phrase
            nearest = nearest if number is None else number
        between += ["very"] * (left - 1) + [generator.choice(_ADVERBS)] * (left > 0)
        object_ = _noun(generator.random() < 0.5, generator)
        words = ("the", _noun(plural, generator), *between, _verb(plural, generator), "the", object_, ".")
        return cls(words, distance + 2, nearest is not plural)


def _noun(plural: bool, generator: random.Random) -> str:
    return generator.choice(list(_NOUNS.values() if plural else _NOUNS))


def _verb(plural: bool, generator: random.Random) -> str:
    return generator.choice(list(_FORMS if plural else _FORMS.values()))


def _phrase(length: int, generator: random.Random) -> tuple[Sequence[str], bool | None]:
    """Draw a phrase; also return whether its noun is plural, None if it has no noun."""
    plural, adjective = generator.random() < 0.5, generator.choice(_ADJECTIVES)
    place, noun, verb = generator.choice(_PLACES), _noun(plural, generator), _verb(plural, generator)
    if length == 3:
        return (place, "the", noun), plural
    if length == 4:
        return generator.choice(((place, "the", adjective, noun), ("that", "the", noun, verb))), plural
    if length == 5 and generator.random() < 0.5:
        return ("that", "the", adjective, noun, verb), plural
    return (",", "which", "looked", *(("very",) if length == 6 else ()), adjective, ","), None
