"""The phrases of many texts: how often each occurs, and what it speaks for wherever it does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, overload

from unrolled.errors import UsageError
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.frames import to_frame
from unrolled.report.formatting import clip, counted, signed, visible
from unrolled.report.spans import by_span

__all__ = ["LEAST", "LONGEST", "CorpusPhrase", "CorpusPhrases", "PhraseTotals"]

LONGEST, LEAST = 3, 5
"""Tokens of the longest phrases, and texts in which each occurs at least, unless others are asked for."""

_SHOWN, _TEXT = 10, 60
"""Phrases of each end, and characters of a phrase, that a printed table shows."""


@dataclass(frozen=True)
class CorpusPhrase:
    """One phrase, over all its occurrences in a set of texts."""

    text: str
    order: int
    """Number of tokens."""
    texts: int
    """Number of texts in which it occurs."""
    count: int
    """Number of its occurrences."""
    phrase_score: float
    """Mean of its phrase scores."""
    deviation: float
    """Standard deviation of its phrase scores over the occurrences; 0 if the phrase says the same everywhere."""


@dataclass(frozen=True, repr=False)
class CorpusPhrases(Sequence[CorpusPhrase]):
    """Phrases from the highest mean score to the lowest; ``print`` shows both ends."""

    members: tuple[CorpusPhrase, ...]
    target: str
    """The output that was explained: phrases above 0 speak for it."""
    expansion: str
    texts: int
    """Number of texts."""
    least: int
    """Number of texts in which a phrase occurs at least."""

    @overload
    def __getitem__(self, place: int) -> CorpusPhrase: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[CorpusPhrase, ...]: ...

    def __getitem__(self, place: int | slice) -> CorpusPhrase | tuple[CorpusPhrase, ...]:
        return self.members[place]

    def __len__(self) -> int:
        return len(self.members)

    def to_records(self) -> list[dict[str, object]]:
        """Return every phrase as a dictionary, for JSON, CSV or a data frame."""
        return [asdict(each) for each in self]

    def to_frame(self) -> Any:
        """Return every phrase as a row of a data frame: of pandas, or of polars where pandas is not installed.

        Raises:
            UsageError: If neither is installed.
        """
        return to_frame(self.to_records())

    def __repr__(self) -> str:
        return f"CorpusPhrases({len(self)} of {self.texts} texts, {self.target}, {self.expansion})"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        of = f"{counted(len(self), 'phrase')} in at least {counted(self.least, 'text')} of {self.texts:,}"
        yield f"{visible(self.target)} by {self.expansion}: {of}"
        if not self:
            return
        speak_for = [each for each in self[:_SHOWN] if each.phrase_score > 0]
        against = [each for each in self[: -_SHOWN - 1 : -1] if each.phrase_score < 0]
        for heading, rows in (("highest", speak_for), ("lowest", against)):
            if rows:
                yield f"\n{heading}  mean score  deviation   texts  phrase"
            for each in rows:
                yield (
                    f"{'':{len(heading)}}  {signed(each.phrase_score):>10}  {each.deviation:9.3f}  {each.texts:6,}  "
                    f"{clip(visible(each.text), _TEXT)}"
                )


@dataclass
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
    sums: dict[tuple[str, ...], _Sums] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise UsageError(f"longest is {self.longest}; expected 1 or more tokens")

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
        for one in explanation.sequences:
            for length, scores in enumerate(by_span(one, "phrase").T[: self.longest].tolist(), start=1):
                for start in range(len(one) - length + 1):
                    phrase = one.tokens[start : start + length]
                    self.sums.setdefault(phrase, _Sums()).add(self.texts, scores[start])
        self.texts += 1

    def phrases(self, least: int) -> CorpusPhrases:
        """Return the phrases that occur in at least so many texts.

        Raises:
            UsageError: If there are no texts, or ``least`` is below 1.
        """
        if self.explained is None:
            raise UsageError("there are no explanations; expected at least one")
        if least < 1:
            raise UsageError(f"least is {least}; expected 1 or more texts")
        found = [
            CorpusPhrase(
                text=" ".join(phrase),
                order=len(phrase),
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
