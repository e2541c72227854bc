"""The phrases of many texts: how often each occurs, and what it speaks for wherever it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from unrolled.report.formatting import clip, counted, magnitude, signed, visible
from unrolled.report.frames import to_frame

__all__ = ["CorpusPhrase", "CorpusPhrases"]

_SHOWN, _TEXT = 10, 60
"""Phrases of each end, and characters of a phrase, that a printed table shows."""


@dataclass(frozen=True)
class CorpusPhrase:
    """One phrase, over all its occurrences in a set of texts."""

    tokens: tuple[str, ...]
    texts: int
    """Number of texts in which it occurs."""
    count: int
    """Number of its occurrences."""
    phrase_score: float
    """Mean of its phrase scores."""
    deviation: float
    """Standard deviation of its phrase scores over the occurrences; 0 if the phrase says the same everywhere."""

    @property
    def text(self) -> str:
        """Its tokens, joined by blanks."""
        return " ".join(self.tokens)

    @property
    def order(self) -> int:
        """Number of tokens."""
        return len(self.tokens)

    @property
    def shown_text(self) -> str:
        """Its tokens as they are shown: a blank among them is read."""
        return " ".join(map(visible, self.tokens))

    @property
    def shown_deviation(self) -> str:
        """The deviation with the decimals of the mean: what is less is rounding."""
        return f"{self.deviation:.3f}" if 0.0005 <= abs(self.phrase_score) < 1e5 else magnitude(self.deviation)


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
        return [{name: getattr(each, name) for name in self.columns} for each in self]

    @property
    def columns(self) -> tuple[str, ...]:
        """What :meth:`to_records` names the values of a phrase."""
        return "text", "order", "texts", "count", "phrase_score", "deviation"

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

    @property
    def highest(self) -> tuple[CorpusPhrase, ...]:
        """The first of those that speak for the output, the highest first; as many as are shown."""
        return tuple(each for each in self.members[:_SHOWN] if each.phrase_score > 0)

    @property
    def lowest(self) -> tuple[CorpusPhrase, ...]:
        """The last of those that speak against it, the lowest first."""
        return tuple(each for each in self.members[: -_SHOWN - 1 : -1] if each.phrase_score < 0)

    @property
    def scope(self) -> str:
        """How many phrases there are, and in how many texts."""
        return f"{counted(len(self), 'phrase')} in at least {counted(self.least, 'text')} of {self.texts:,}"

    def _lines(self) -> Iterator[str]:
        yield f"{visible(self.target)} by {self.expansion}: {self.scope}"
        for heading, rows in (("highest", self.highest), ("lowest", self.lowest)):
            if rows:
                yield f"\n{heading}  mean score  deviation   texts  phrase"
            for each in rows:
                numbers = f"{signed(each.phrase_score):>10}  {each.shown_deviation:>9}  {each.texts:6,}"
                yield f"{'':{len(heading)}}  {numbers}  {clip(each.shown_text, _TEXT)}"
