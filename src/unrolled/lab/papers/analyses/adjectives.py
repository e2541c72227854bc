"""Adjectives that say good or bad of a film: their share in positive texts tells, and a lexicon of adjectives.

Two steps: words that occur more than three times as often in positive texts as in negative ones, or the other way
round; of these the adjectives to which textblob gives a polarity of the same sign.

Source:
    Implicit n-grams, appendix E.1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from xml.etree import ElementTree

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Classification, Example, Rated
from unrolled.lab.papers.framework.corpus_cache import load_once

__all__ = ["PRINTED", "PUBLISHED", "PolarAdjectives", "by_sign", "polar_adjectives", "sst2_adjectives"]

RATIO = 3.0
"""How many times as frequent a word is where it belongs."""
_LEXICON = ("en", "en-sentiment.xml")
_ADJECTIVE = "JJ"  # Penn Treebank's tag


@dataclass(frozen=True)
class PolarAdjectives:
    """Adjectives of both polarities, the frequent first."""

    positive: tuple[str, ...]
    negative: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """Those of both polarities, the positive ones first."""
        return (*self.positive, *self.negative)


PUBLISHED = {"positive": 73, "negative": 47}
"""How many the paper found."""
_PRINTED = (
    "outstanding ecological inventive comfortable nice authentic spontaneous sympathetic lovable unadulterated "
    "controversial suitable grand happy enthusiastic adventurous successful noble true detailed sophisticated "
    "sensational exotic fantastic remarkable impressive charismatic good effective rich popular unforgettable famous "
    "comical energetic ingenious extraordinary",
    "bad tedious miserable psychotic didactic inexplicable feeble sloppy disastrous stupid amateurish false cynical "
    "farcical terrible unhappy horrible atrocious idiotic wrong pathetic angry uninspired vicious unfocused "
    "unnecessary artificial troubled questionable arduous stereotypical",
)
PRINTED = PolarAdjectives(*(tuple(words.split()) for words in _PRINTED))
"""Those of the paper's that its table 9 prints."""


def polar_adjectives(examples: Iterable[Example], ratio: float = RATIO) -> PolarAdjectives:
    r"""Find the polar adjectives of a corpus.

    .. math:: \frac{n_+(w)}{n_-(w)} > 3 \;\text{or}\; < \frac13

    The paper does not say whether n counts occurrences or shares, in sentences or in phrases, nor how textblob is
    asked. Occurrences in all phrases, and the adjectives of textblob's lexicon of sentiments, give a list that holds
    all 68 adjectives that it prints; whole sentences do not: as many negative as positive ones have "authentic".

    Args:
        examples: texts with label 1 if they are positive, 0 if negative. Case is ignored.
        ratio: above which a word is positive, and above whose inverse it is not negative.

    Returns:
        The adjectives.

    Raises:
        UsageError: when textblob is missing.
    """
    seen: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for example in examples:
        seen[example.label].update(token.lower() for token in example.tokens)
    polarity = _adjectives()
    found: dict[bool, list[str]] = {True: [], False: []}
    for word, _ in sorted((seen[0] + seen[1]).items(), key=lambda item: (-item[1], item[0])):
        bad, good = seen[0][word], seen[1][word]
        here = good / bad if bad else math.inf
        if here > ratio and polarity.get(word, 0.0) > 0:
            found[True].append(word)
        elif here < 1 / ratio and polarity.get(word, 0.0) < 0:
            found[False].append(word)
    return PolarAdjectives(tuple(found[True]), tuple(found[False]))


def by_sign(examples: Iterable[Rated]) -> Iterator[Example]:
    """Call texts positive that are rated above 0 and negative that are rated below; others are left out.

    Args:
        examples: texts with ratings.

    Yields:
        Texts with label 1 or 0.
    """
    for example in examples:
        if example.rating:
            yield Example(example.tokens, int(example.rating > 0))


@lru_cache(maxsize=1)
def sst2_adjectives(folder: Path | None) -> PolarAdjectives:
    """Find those of all phrases of SST-2, once for all trials that ask.

    Args:
        folder: where the datasets' folders lie; the environment variable ``UNROLLED_DATA`` when None.

    Returns:
        The adjectives: 247 positive and 217 negative ones, where the paper has 73 and 47.
    """
    return polar_adjectives(load_once("sst2", Classification, folder).train)


@lru_cache(maxsize=1)
def _adjectives() -> Mapping[str, float]:
    """Give the polarity of every adjective in textblob's lexicon, the mean over its senses.

    The file is read, and textblob not imported: that would load nltk and scipy as well.
    """
    package = find_spec("textblob")
    if package is None or not package.submodule_search_locations:
        raise UsageError('adjectives need textblob; install it with: pip install "unrolled[figures]"')
    lexicon = ElementTree.parse(Path(package.submodule_search_locations[0], *_LEXICON))  # noqa: S314  # not a user's
    senses: dict[str, list[float]] = {}
    for word in lexicon.iterfind(f"word[@pos='{_ADJECTIVE}']"):
        senses.setdefault(word.attrib["form"], []).append(float(word.attrib["polarity"]))
    return {word: fmean(polarities) for word, polarities in senses.items()}
