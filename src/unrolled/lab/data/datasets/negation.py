"""The negation corpus: made-up film reviews that turn on how often they say "not".

Ten positive and twelve negative adjectives; a sentence ends with an adjective (its polarity), its negation
(the opposite) or its double negation (its own again): "those filmmakings were not not charming". 4,120
sentences to train on, 200 each for dev and test, half of each positive. No sentence occurs twice, so none of
the test was trained on.

The source gives the adjectives and the sizes. It leaves open, and we chose:

- which phrases occur: the negation and double negation of every adjective, of which section 5.1.2 speaks.
  (Table 6 prints 18 and 6 of them; networks trained on these alone may get "not not charming" wrong);
- how often: each label has as many tokens as negations as double negations, and each phrase is as frequent as
  any other of its kind and label;
- "mostly" positive or negative: there is no label noise. A positive adjective stands in negative sentences
  exactly where it is negated once;
- the rest of a sentence: a neutral subject and verb, sometimes a neutral opening, so that lengths vary. The
  phrase comes last, where a network that reads its last state sees it.

Source:
    Sun and Lu, on sequence-level features of GRU and LSTM, section 5.1.2 and appendix A.2.
"""

from __future__ import annotations

import random
from itertools import cycle, islice, product
from pathlib import Path

from unrolled.lab.data.corpus import Classification, Dataset, Example

__all__ = ["NEGATIVE", "POSITIVE", "NegationReviews"]

POSITIVE = (
    "good", "nice", "charming", "awesome", "fascinating",
    "attractive", "interesting", "sweet", "stunning", "amazing",
)  # fmt: skip
"""The ten positive adjectives."""
NEGATIVE = (
    "awful", "bad", "uninspiring", "dull", "boring", "tedious",
    "mediocre", "shallow", "pointless", "unfunny", "gross", "poor",
)  # fmt: skip
"""The twelve negative adjectives."""

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
    """The corpus, generated anew at every reading, and always the same for the same seed.

    Args:
        double_negation: whether double negations occur (the source's figure 1 leaves them out); without them
            sentences with tokens and negations take their place.
        seed: which sentences are drawn.
    """

    name = "negation"
    kind = Classification
    description = "made-up reviews with negations and double negations: 4,120 / 200 / 200 sentences"
    licence = "generated; MIT, as this package"
    citation = "Sun and Lu, sequence-level features of GRU and LSTM, appendix A.2"

    def __init__(self, *, double_negation: bool = True, seed: int = 0) -> None:
        self.double_negation = double_negation
        self.seed = seed

    def read(self, folder: Path | None = None) -> Classification:  # generated: no folder is needed
        """Generate the three splits.

        Args:
            folder: not needed.

        Returns:
            The dataset; labels are 0 for negative and 1 for positive.
        """
        generator = random.Random(self.seed)  # noqa: S311  # sentences, not secrets
        halves = [self._draw(label, generator) for label in (0, 1)]
        splits, start = [], 0
        for size in _SIZES:
            stop = start + size // 2
            split = [example for half in halves for example in half[start:stop]]
            generator.shuffle(split)
            splits.append(tuple(split))
            start = stop
        train, dev, test = splits
        return Classification(name=self.name, labels=("negative", "positive"), train=train, dev=dev, test=test)

    def _draw(self, label: int, generator: random.Random) -> list[Example]:
        """Draw the sentences of one label, no two alike: kinds in turn, and the phrases of a kind in turn."""
        frames = _frames()
        beginnings = {
            phrase: iter(generator.sample(frames, len(frames)))
            for kind in _phrases(label, self.double_negation)
            for phrase in kind
        }
        turns = cycle([cycle(kind) for kind in _phrases(label, self.double_negation)])
        phrases = (next(kind) for kind in islice(turns, sum(_SIZES) // 2))
        return [Example(tuple(f"{next(beginnings[phrase])} {phrase}".split()), label) for phrase in phrases]


def _phrases(label: int, double_negation: bool) -> list[list[str]]:
    """Give the tokens, the negations and perhaps the double negations that carry a label."""
    same, opposite = (NEGATIVE, POSITIVE) if label == 0 else (POSITIVE, NEGATIVE)
    kinds = [list(same), [f"not {word}" for word in opposite]]
    if double_negation:
        kinds.append([f"not not {word}" for word in same])
    return kinds


def _frames() -> list[str]:
    """Every way to begin a sentence."""
    singular = product(_OPENINGS, _SINGULAR, _NOUNS, ("is", "was"))
    plural = product(_OPENINGS, _PLURAL, _PLURALS, ("are", "were"))
    return [" ".join(part for part in frame if part) for frame in (*singular, *plural)]
