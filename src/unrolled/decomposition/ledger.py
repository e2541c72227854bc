"""The account of one output: which n-gram contributed what, and what is left over.

For a target logit F(H), read from the states H of a recurrent network, with H = Σ_i v_{i:t} (+ initial state),

    logit = Σ_t Σ_i w_tᵀ v_{i:t}  +  initial state  +  bias F(0)  +  remainder

where w_t is the readout of position t, averaged along the ray from 0 to H. Two numbers are kept of every n-gram:

- its **contribution** w_tᵀ v_{i:t}: its part of this logit. All contributions add up to ``ledger["ngrams"]``.
  A model that reads only its last state has contributions only from n-grams that end there.
- its **score** rᵀ v_{i:t} with r = Σ_t w_t: what it would contribute if the model read the position it ends at.
  This is the polarity score of the papers (r = w, the class weight, for a linear readout of the last or of the
  mean state), and it is what a phrase inside the sentence is judged by.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from unrolled.errors import UsageError

__all__ = ["Account", "Ledger", "NGram", "Triangle"]


@dataclass(frozen=True)
class Ledger(Mapping[str, float]):
    """Where a logit comes from: the first four add up to the fifth."""

    ngrams: float
    """Σ of the contributions of all n-grams."""
    initial: float
    """What the initial state contributes, carried through the whole sequence."""
    bias: float
    """F(0): what the model says when the recurrent states it reads are zero."""
    remainder: float
    """What the other three leave unexplained: the error of the expansion, of quadrature and of rounding."""
    logit: float
    """The output itself, as the model gave it."""

    def __getitem__(self, key: str) -> float:
        if key not in self.__dataclass_fields__:
            raise KeyError(key)
        return float(getattr(self, key))

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dataclass_fields__)

    def __len__(self) -> int:
        return len(self.__dataclass_fields__)


@dataclass(frozen=True)
class NGram:
    """One n-gram of one sentence: the tokens ``[start, stop)`` as one direction of the network reads them."""

    start: int
    stop: int
    text: str
    direction: str
    score: float
    contribution: float

    @property
    def order(self) -> int:
        """How many tokens it spans."""
        return self.stop - self.start


@dataclass(frozen=True)
class Triangle:
    """Every n-gram's two numbers, by direction, position read and position entered.

    ``scores[d, t, i]`` belongs to the n-gram that enters at token i and is read at token t. Forward, i <= t, it
    spans ``[i, t + 1)``; backward, i >= t, it spans ``[t, i + 1)``. The other half is zero.
    """

    scores: Tensor
    """Shape (directions, time, time)."""
    contributions: Tensor
    """Shape (directions, time, time)."""


@dataclass(frozen=True)
class Account:
    """The account of one logit of one sequence. All arrays are float64 tensors on the CPU."""

    tokens: tuple[str, ...]
    directions: tuple[str, ...]
    """``("forward",)`` or ``("forward", "backward")``."""
    triangle: Triangle
    ledger: Ledger
    target: str
    """What was explained, in words: ``"class 1"``."""
    expansion: str
    exact: bool
    """Whether the n-grams of this expansion sum to the state."""
    local: bool
    """Whether an n-gram's term depends on its own tokens alone."""
    residual: float
    """Largest relative error, over positions, of the n-grams' sum against the network's own state."""
    parity: float
    """Largest difference between our states and the network's."""
    scope: str = "tokens"
    """What the n-grams are n-grams of: the tokens, or the inputs of the top layer of a bidirectional stack."""
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.tokens)

    def _directions(self, direction: str | None) -> list[int]:
        if direction is None:
            return list(range(len(self.directions)))
        if direction not in self.directions:
            raise UsageError(f"unknown direction {direction!r}; expected one of: {', '.join(self.directions)}")
        return [self.directions.index(direction)]

    def _span(self, start: int, stop: int) -> None:
        if not 0 <= start < stop <= len(self):
            raise UsageError(
                f"no tokens in [{start}, {stop}); expected 0 <= start < stop <= {len(self)}, the sentence's length"
            )

    def _cell(self, matrix: Tensor, d: int, start: int, stop: int) -> float:
        """The entry of the n-gram [start, stop): read at its last token forward, at its first backward."""
        read, entered = (stop - 1, start) if self.directions[d] == "forward" else (start, stop - 1)
        return float(matrix[d, read, entered])

    def score(self, start: int, stop: int, direction: str | None = None) -> float:
        """Score one n-gram: rᵀ v, what it would contribute if the position it ends at were read.

        Args:
            start: its first token.
            stop: one past its last token.
            direction: ``"forward"`` or ``"backward"``; both are added when it is left out.

        Returns:
            The score, in units of the logit.

        Raises:
            UsageError: when the span is empty or outside the sentence, or the direction is unknown.
        """
        self._span(start, stop)
        return sum(self._cell(self.triangle.scores, d, start, stop) for d in self._directions(direction))

    def contribution(self, start: int, stop: int, direction: str | None = None) -> float:
        """Give one n-gram's part of the logit: w_tᵀ v.

        Args:
            start: its first token.
            stop: one past its last token.
            direction: ``"forward"`` or ``"backward"``; both are added when it is left out.

        Returns:
            The contribution, in units of the logit.

        Raises:
            UsageError: when the span is empty or outside the sentence, or the direction is unknown.
        """
        self._span(start, stop)
        return sum(self._cell(self.triangle.contributions, d, start, stop) for d in self._directions(direction))

    def phrase_score(self, start: int, stop: int, direction: str | None = None) -> float:
        """Score a phrase: the sum of the scores of all n-grams inside it that end at its end.

        Forward they end at the last token, backward at the first: where that direction has read it all.

        Args:
            start: its first token.
            stop: one past its last token.
            direction: ``"forward"`` or ``"backward"``; both are added when it is left out.

        Returns:
            The score, in units of the logit.

        Raises:
            UsageError: when the span is empty or outside the sentence, or the direction is unknown.
        """
        self._span(start, stop)
        total = 0.0
        for d in self._directions(direction):
            read = stop - 1 if self.directions[d] == "forward" else start
            total += float(self.triangle.scores[d, read, start:stop].sum())
        return total

    @cached_property
    def token_scores(self) -> Tensor:
        """Each token's part of the logit: the contributions of all n-grams that enter at it, shape (time,).

        They add up to ``ledger["ngrams"]``.
        """
        return self.triangle.contributions.sum(dim=(0, 1))

    def _ngram(self, d: int, start: int, stop: int) -> NGram:
        return NGram(
            start=start,
            stop=stop,
            text=" ".join(self.tokens[start:stop]),
            direction=self.directions[d],
            score=self._cell(self.triangle.scores, d, start, stop),
            contribution=self._cell(self.triangle.contributions, d, start, stop),
        )

    def ngrams(self) -> Iterator[NGram]:
        """Every n-gram of every direction, by start and length."""
        for d in range(len(self.directions)):
            for start in range(len(self)):
                for stop in range(start + 1, len(self) + 1):
                    yield self._ngram(d, start, stop)

    def top(self, k: int = 10) -> list[NGram]:
        """Give the k n-grams that moved this logit most, whichever way.

        Args:
            k: how many.

        Returns:
            N-grams by falling absolute contribution; those that contribute nothing at all are left out.

        Raises:
            UsageError: when k is negative.
        """
        if k < 0:
            raise UsageError(f"k is {k}; expected 0 or more")
        sizes = self.triangle.contributions.abs().flatten()
        largest = sizes.topk(min(k, sizes.numel()))
        time = len(self)
        found = []
        for size, place in zip(largest.values.tolist(), largest.indices.tolist(), strict=True):
            if size > 0:
                d, read, entered = place // time**2, place // time % time, place % time
                found.append(self._ngram(d, min(read, entered), max(read, entered) + 1))
        return found

    def to_records(self) -> list[dict[str, object]]:
        """Every n-gram as a plain dictionary, ready for JSON, CSV or a data frame."""
        return [
            {
                "start": n.start,
                "stop": n.stop,
                "order": n.order,
                "text": n.text,
                "direction": n.direction,
                "score": n.score,
                "contribution": n.contribution,
            }
            for n in self.ngrams()
        ]

    @property
    def closes(self) -> float:
        """The remainder's size relative to the logit: |remainder| / |logit|."""
        logit = abs(self.ledger.logit)
        return abs(self.ledger.remainder) / logit if logit > 0 else math.inf
