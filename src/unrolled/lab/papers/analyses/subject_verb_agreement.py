"""Sentences whose verb agrees with a subject that stands far before it, as in "the cats near the dog chase the bird".

Between subject and verb stand phrases with nouns of either number: "near the old dog", "that the dogs hear" - whose
verb agrees with its own subject -, and phrases that say nothing of number: ", which looked very hungry ,", "often".
"Which was very hungry", as in the lecture, would tell the number once more and is left out. The nearest noun is right
by chance only, so nothing but the subject tells which form of the verb is right.

Source:
    CS 577, lecture 5, long-term dependencies; Linzen, Dupoux and Goldberg (2016), arXiv:1611.01368, for attractors.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

__all__ = ["FORMS", "VOCABULARY", "AgreementSentence"]

_NOUNS = {
    "cat": "cats", "dog": "dogs", "bird": "birds", "child": "children", "farmer": "farmers", "teacher": "teachers",
    "mouse": "mice", "king": "kings", "girl": "girls", "horse": "horses",
}  # fmt: skip
_VERBS = ("chase", "know", "love", "hear", "see", "follow", "help", "find")
_PLACES = ("near", "behind", "beside", "with")
_ADJECTIVES = ("old", "young", "quiet", "clever", "hungry")
_ADVERBS = ("often", "always", "rarely")
FORMS = {verb: f"{verb}s" for verb in _VERBS}
"""For the plural form of each verb its singular form."""
VOCABULARY = (
    "the", "that", ",", "which", "looked", "very", ".", *_NOUNS, *_NOUNS.values(), *FORMS, *FORMS.values(), *_PLACES,
    *_ADJECTIVES, *_ADVERBS,
)  # fmt: skip
"""Every word."""
_LENGTHS = (3, 4, 5, 6)  # of phrases that may be followed by others


@dataclass(frozen=True)
class AgreementSentence:
    """A sentence, and where its main verb stands."""

    words: tuple[str, ...]
    verb: int
    """The place of the main verb; its subject's noun is the second word."""
    misled: bool
    """Whether the noun before the verb is of the other number than the subject."""

    @property
    def plural(self) -> bool:
        """Whether subject and verb are plural."""
        return self.words[self.verb] in FORMS

    @cached_property
    def forms(self) -> tuple[str, str]:
        """The verb's two forms, the right one first."""
        verb = self.words[self.verb]
        return (verb, FORMS[verb]) if self.plural else (verb, verb.removesuffix("s"))

    @classmethod
    def draw(cls, distance: int, generator: random.Random) -> Self:
        """Draw a sentence.

        Args:
            distance: how many words stand between the subject's noun and its verb.
            generator: draws every choice.

        Returns:
            A sentence of ``distance`` + 6 words.
        """
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
    return generator.choice(list(FORMS if plural else FORMS.values()))


def _phrase(length: int, generator: random.Random) -> tuple[Sequence[str], bool | None]:
    """Draw a phrase, and tell whether its noun is plural; None when it has none."""
    plural, adjective = generator.random() < 0.5, generator.choice(_ADJECTIVES)
    place, noun, verb = generator.choice(_PLACES), _noun(plural, generator), _verb(plural, generator)
    if length == 3:
        return (place, "the", noun), plural
    if length == 4:
        return generator.choice(((place, "the", adjective, noun), ("that", "the", noun, verb))), plural
    if length == 5 and generator.random() < 0.5:
        return ("that", "the", adjective, noun, verb), plural
    return (",", "which", "looked", *(("very",) if length == 6 else ()), adjective, ","), None
