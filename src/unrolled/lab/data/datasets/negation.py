"""Made-up film reviews whose class depends on the number of negations.

There are ten positive and twelve negative adjectives. A sentence ends with an adjective (which is its class), its
negation (the opposite class) or its double negation (its class again): "those filmmakings were not not charming".
4,120 sentences are for training, 200 each for dev and test, half of each positive. No sentence occurs twice.

The source gives the adjectives and the sizes. It leaves these points open, and we chose:

- which phrases occur: the negation and double negation of every adjective, as in section 5.1.2. (Table 6 lists only 18
  and 6 of them; networks trained on these may get "not not charming" wrong.)
- how often: for each class, single adjectives, negations and double negations are equally frequent, and so are the
  phrases of each of these three;
- "mostly" positive or negative: no label is wrong. A positive adjective is in negative sentences only where it is
  negated once;
- the rest of a sentence: a neutral subject and verb, sometimes a neutral opening, so that lengths differ. The phrase is
  last, where a model that reads the last state sees it.

Source:
    Sun and Lu, on sequence-level features of GRU and LSTM, section 5.1.2 and appendix A.2.
"""

from __future__ import annotations

import random
from functools import lru_cache
from itertools import cycle, islice, product
from pathlib import Path

from unrolled.lab.data.corpus import Classification, Dataset, Example

__all__ = ["NEGATIVE", "POSITIVE", "NegationReviews"]

POSITIVE = (
    "good", "nice", "charming", "awesome", "fascinating",
    "attractive", "interesting", "sweet", "stunning", "amazing",
)  # fmt: skip
NEGATIVE = (
    "awful", "bad", "uninspiring", "dull", "boring", "tedious",
    "mediocre", "shallow", "pointless", "unfunny", "gross", "poor",
)  # fmt: skip

_OPENINGS = ("", "overall ,", "in the end", "i think", "we felt that", "to me ,", "as expected ,")
_SINGULAR = ("the", "this", "that", "their", "his", "her")
_PLURAL = ("the", "these", "those", "their", "his", "her")
_NOUNS = (
    "film", "movie", "story", "plot", "script", "scene", "picture", "soundtrack", "filmmaking", "character",
)  # fmt: skip
_PLURALS = (
    "films", "movies", "stories", "plots", "scripts", "scenes", "pictures", "soundtracks", "filmmakings",
    "characters",
)  # fmt: skip
_SIZES = (4120, 200, 200)


class NegationReviews(Dataset):
    """Generated sentences, the same at every reading for the same seed.

    Args:
        double_negation: Whether double negations occur (they do not in the source's figure 1); without them there are
            more single adjectives and negations.
        seed: Which sentences are drawn.
    """

    name = "negation"
    kind = Classification
    description = "made-up reviews with negations and double negations: 4,120 / 200 / 200 sentences"
    licence = "generated; MIT, as this package"
    citation = "Sun and Lu, sequence-level features of GRU and LSTM, appendix A.2"

    def __init__(self, *, double_negation: bool = True, seed: int = 0) -> None:
        self.double_negation = double_negation
        self.seed = seed

    def read(self, folder: Path | None = None) -> Classification:
        """Generate the splits; no folder is needed. Labels are 0 for negative and 1 for positive."""
        train, dev, test = _splits(self.double_negation, self.seed)
        return Classification(name=self.name, labels=("negative", "positive"), train=train, dev=dev, test=test)


@lru_cache(maxsize=4)  # to draw them takes longer than all else that is done before a training on them
def _splits(double_negation: bool, seed: int) -> tuple[tuple[Example, ...], ...]:
    generator = random.Random(seed)  # noqa: S311  # sentences, not secrets
    halves = [_draw(_phrases(label, double_negation), label, generator) for label in (0, 1)]
    splits, start = [], 0
    for size in _SIZES:
        stop = start + size // 2
        split = [example for half in halves for example in half[start:stop]]
        generator.shuffle(split)
        splits.append(tuple(split))
        start = stop
    return tuple(splits)


def _draw(kinds: list[list[str]], label: int, generator: random.Random) -> list[Example]:
    """Draw different sentences of one class, from its kinds of phrases in turn."""
    frames = _frames()
    beginnings = {phrase: iter(generator.sample(frames, len(frames))) for kind in kinds for phrase in kind}
    turns = cycle([cycle(kind) for kind in kinds])
    phrases = (next(kind) for kind in islice(turns, sum(_SIZES) // 2))
    return [Example(tuple(f"{next(beginnings[phrase])} {phrase}".split()), label) for phrase in phrases]


def _phrases(label: int, double_negation: bool) -> list[list[str]]:
    """Return the adjectives, negations and perhaps double negations of a class."""
    same, opposite = (NEGATIVE, POSITIVE) if label == 0 else (POSITIVE, NEGATIVE)
    kinds = [list(same), [f"not {word}" for word in opposite]]
    if double_negation:
        kinds.append([f"not not {word}" for word in same])
    return kinds


def _frames() -> list[str]:
    """Return every beginning of a sentence."""
    singular = product(_OPENINGS, _SINGULAR, _NOUNS, ("is", "was"))
    plural = product(_OPENINGS, _PLURAL, _PLURALS, ("are", "were"))
    return [" ".join(part for part in frame if part) for frame in (*singular, *plural)]
