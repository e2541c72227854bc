"""Adjectives that are positive or negative in a corpus of labelled texts and in a sentiment lexicon.

Two conditions select them: the word occurs more than three times as often in texts of one label as in texts of the
other, and textblob's lexicon gives the adjective a polarity of the same sign.

Source:
    Implicit n-grams, appendix E.1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from xml.etree import ElementTree

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Classification, Example, RatedText
from unrolled.lab.papers.framework.corpora import load_cached

__all__ = [
    "PAPER_ADJECTIVES",
    "PAPER_COUNTS",
    "PolarAdjectives",
    "adjective_polarities",
    "corpus_with_adjectives",
    "polar_adjectives",
    "rating_signs",
    "sst2_adjectives",
]

_RATIO = 3.0
_LEXICON = ("en", "en-sentiment.xml")
_ADJECTIVE = "JJ"  # tag of the Penn Treebank


@dataclass(frozen=True)
class PolarAdjectives:
    """Adjectives of both polarities, the most frequent first."""

    positive: tuple[str, ...]
    negative: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """The positive adjectives, then the negative ones."""
        return (*self.positive, *self.negative)


PAPER_COUNTS = {"positive": 73, "negative": 47}
"""How many adjectives the paper found."""
_PRINTED = (
    "outstanding ecological inventive comfortable nice authentic spontaneous sympathetic lovable unadulterated "
    "controversial suitable grand happy enthusiastic adventurous successful noble true detailed sophisticated "
    "sensational exotic fantastic remarkable impressive charismatic good effective rich popular unforgettable famous "
    "comical energetic ingenious extraordinary",
    "bad tedious miserable psychotic didactic inexplicable feeble sloppy disastrous stupid amateurish false cynical "
    "farcical terrible unhappy horrible atrocious idiotic wrong pathetic angry uninspired vicious unfocused "
    "unnecessary artificial troubled questionable arduous stereotypical",
)
PAPER_ADJECTIVES = PolarAdjectives(*(tuple(words.split()) for words in _PRINTED))
"""The adjectives that the paper's table 9 prints."""


def polar_adjectives(examples: Iterable[Example], ratio: float = _RATIO) -> PolarAdjectives:
    r"""Find the polar adjectives of texts with label 1 (positive) or 0 (negative), ignoring case.

    .. math:: \frac{n_+(w)}{n_-(w)} > 3 \;\text{or}\; < \frac13

    The paper does not say whether n counts occurrences or shares, nor whether it counts sentences or phrases, nor how
    it queries textblob. Its authors' published code counts occurrences, and asks for more than five of them with the
    word's label, a polarity beyond ±0.2 and the tag JJ for the word alone; we do not. Occurrences in all phrases of
    SST-2 and the adjectives of textblob's lexicon give a list that contains all 68 printed adjectives. Sentences alone
    do not: "authentic" is equally frequent in both labels there.
    """
    seen: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for example in examples:
        seen[example.label].update(token.lower() for token in example.tokens)
    polarity = adjective_polarities()
    found: dict[bool, list[str]] = {True: [], False: []}
    for word, _ in sorted((seen[0] + seen[1]).items(), key=lambda item: (-item[1], item[0])):
        negative, positive = seen[0][word], seen[1][word]
        here = positive / negative if negative else math.inf
        if here > ratio and polarity.get(word, 0.0) > 0:
            found[True].append(word)
        elif here < 1 / ratio and polarity.get(word, 0.0) < 0:
            found[False].append(word)
    return PolarAdjectives(tuple(found[True]), tuple(found[False]))


def rating_signs(examples: Iterable[RatedText]) -> Iterator[Example]:
    """Label texts 1 if their rating is above 0 and 0 if it is below; drop those rated 0."""
    return (Example(example.tokens, int(example.rating > 0)) for example in examples if example.rating)


@lru_cache(maxsize=1)
def sst2_adjectives(folder: Path | None) -> PolarAdjectives:
    """Find those of all phrases of SST-2: 247 positive and 217 negative ones, where the paper has 73 and 47."""
    return polar_adjectives(load_cached("sst2", Classification, folder).train)


def corpus_with_adjectives(
    folder: Path | None, made_up: Callable[[], Classification] | None, ratio: float
) -> tuple[Classification, PolarAdjectives]:
    """Read SST-2 and its adjectives; or make a corpus up, and find those of its training texts by ``ratio``."""
    if made_up is None:
        adjectives = sst2_adjectives(folder)
        return load_cached("sst2", Classification, folder), adjectives
    corpus = made_up()
    return corpus, polar_adjectives(corpus.train, ratio)


@lru_cache(maxsize=1)
def adjective_polarities() -> Mapping[str, float]:
    """Give the polarity of every adjective in textblob's lexicon, averaged over its senses.

    Reads the file instead of importing textblob, which would load nltk as well.
    """
    package = find_spec("textblob")
    if package is None or not package.submodule_search_locations:
        raise UsageError('polar adjectives need textblob; install it with: pip install "unrolled[figures]"')
    lexicon = ElementTree.parse(Path(package.submodule_search_locations[0], *_LEXICON))  # noqa: S314  # a package's own
    senses: dict[str, list[float]] = {}
    for word in lexicon.iterfind(f"word[@pos='{_ADJECTIVE}']"):
        senses.setdefault(word.attrib["form"], []).append(float(word.attrib["polarity"]))
    return {word: fmean(polarities) for word, polarities in senses.items()}
