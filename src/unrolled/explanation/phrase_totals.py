"""The phrases of many texts, added up text by text."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass, field

import torch
from torch import Tensor

from unrolled.decomposition.arguments import checked_count
from unrolled.errors import UsageError
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.joint import JointExplanation
from unrolled.report.corpus_phrases import CorpusPhrase, CorpusPhrases
from unrolled.report.spans import by_span

__all__ = ["LEAST", "LONGEST", "PhraseTotals"]

_NUMBERED = re.compile(r"x\d+")
"""The name of a step that has no word."""
LONGEST, LEAST = 3, 5
"""Tokens of the longest phrases, and texts in which each occurs at least, unless others are asked for."""


@dataclass(slots=True)  # there are millions in a large corpus
class _Sums:
    """Occurrences of a phrase so far; ``squares`` is the sum of squared distances from the mean."""

    texts: int = 0
    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    newest: int = -1
    """The text of its last occurrence."""

    def add(self, text: int, value: float) -> None:
        self.texts += text != self.newest
        self.newest = text
        self.count += 1
        before = value - self.mean
        self.mean += before / self.count
        self.squares += before * (value - self.mean)


@dataclass
class PhraseTotals:
    """Adds up phrases text by text, so that no explanation is kept."""

    longest: int
    """Number of tokens of the longest phrases."""
    texts: int = 0
    explained: tuple[str, str] | None = None
    """Output and expansion of all texts."""
    sums: defaultdict[tuple[str, ...], _Sums] = field(default_factory=lambda: defaultdict(_Sums))

    def __post_init__(self) -> None:
        self.longest = checked_count("longest", self.longest, 1)

    def add(self, explanation: Explanation) -> None:
        """Add the phrases of one text.

        Raises:
            UsageError: If it is of another output, or by another expansion, than the texts before it.
        """
        found = explanation.target, explanation.expansion
        if self.explained is None:
            self.explained = found
        for kind, known, new in zip(("output", "expansion"), self.explained, found, strict=True):
            if new != known:
                advice = "target (--target)" if kind == "output" else "expansion"
                raise UsageError(
                    f"the texts are explained for more than one {kind}, {known!r} and {new!r}, whose scores cannot be "
                    f"compared; give one {advice} for all texts"
                )
        for name, tokens, by_length in self._by_text(explanation):
            for length, scores in enumerate(by_length.tolist(), start=1):
                for start in range(len(tokens) - length + 1):
                    phrase = tokens[start : start + length]
                    self.sums[(name + phrase[0], *phrase[1:])].add(self.texts, scores[start])
        self.texts += 1

    def _by_text(self, explanation: Explanation) -> list[tuple[str, tuple[str, ...], Tensor]]:
        """Return what names the phrases of every sequence, its words, and their scores, shape (length, start).

        Networks that read one text give a phrase of it the sum of their scores, as they give the output theirs. One
        that reads the text from its end reads the phrase from its end, too.
        """
        found = []
        for one in explanation.sequences:
            # forms of Unicode look alike: phrases in NFC and NFD would be two rows that nobody can tell apart
            tokens = tuple(unicodedata.normalize("NFC", token) for token in one.tokens)
            # words are the same in every sequence, and step 0 of one is another than that of the next
            name = f"{one.name}: " if one.name and all(map(_NUMBERED.fullmatch, tokens)) else ""
            found.append((name, tokens, by_span(one, "phrase").T[: self.longest]))
        if not isinstance(explanation, JointExplanation) or explanation.from_end is None:
            return found
        together: dict[tuple[str, tuple[str, ...]], Tensor] = {}
        for (name, tokens, scores), turned in zip(found, explanation.from_end, strict=True):
            if turned:
                tokens, scores = tokens[::-1], _from_other_end(scores)
            known = together.get((name, tokens), torch.zeros_like(scores))
            shared = min(len(known), len(scores))
            together[name, tokens] = known[:shared] + scores[:shared]
        return [(*key, scores) for key, scores in together.items()]

    def phrases(self, least: int) -> CorpusPhrases:
        """Return the phrases that occur in at least so many texts.

        Raises:
            UsageError: If there are no texts, or ``least`` is below 1.
        """
        if self.explained is None:
            raise UsageError("there are no explanations; expected at least one")
        least = checked_count("least", least, 1)
        found = [
            CorpusPhrase(
                tokens=phrase,
                texts=sums.texts,
                count=sums.count,
                phrase_score=sums.mean,
                deviation=math.sqrt(sums.squares / sums.count),
            )
            for phrase, sums in self.sums.items()
            if sums.texts >= least
        ]
        found.sort(key=lambda each: (-each.phrase_score, each.text))
        return CorpusPhrases(tuple(found), *self.explained, self.texts, least)


def _from_other_end(scores: Tensor) -> Tensor:
    """Count the first token of each phrase, shape (length, start), in the text that is turned around."""
    turned = scores.flip(-1)  # a phrase of k + 1 tokens at i stands at the end of the turned one: at n - 1 - i - k
    return torch.stack([row.roll(-k) for k, row in enumerate(turned)])
