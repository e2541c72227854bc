"""The attribution of one output: what each n-gram contributed, and what is left over.

For a target logit F(H), read from the states H of a recurrent network, with H_t = Σ_i v_{i:t} + initial state,

    logit = Σ_t Σ_i w_tᵀ v_{i:t}  +  initial state  +  bias  +  remainder

where w_t is the weight with which the model reads the state at position t. Every n-gram has two numbers, both in units
of the logit:

- its **contribution** w_tᵀ v_{i:t}: its part of this logit. All contributions add up to ``ledger["ngrams"]``.
  If the model reads only its last state, only n-grams that end there contribute.
- its **score** rᵀ v_{i:t}: what it would contribute if it ended where the model reads most. Each number of r is the
  weight of largest magnitude with which the model reads that number of the state, over all positions. For a linear head
  U behind the last, the maximal or the sum of the states r is U, and this is the papers' polarity score; behind the
  mean of T states r is U / T, behind attention U times the largest attention.

In a bidirectional network of several layers a path from a token to the state can turn: its n-gram is the span from the
leftmost to the rightmost token that it has seen. ``forward`` and ``backward`` are the directions of the layer that the
model reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property

from torch import Tensor

from unrolled.decomposition.arguments import checked_count
from unrolled.decomposition.attribution.bands import by_entered
from unrolled.decomposition.attribution.ledger import Ledger
from unrolled.decomposition.attribution.outputs import Features, Outputs
from unrolled.decomposition.attribution.own_memory import OwnMemory
from unrolled.decomposition.attribution.triangle import Triangle
from unrolled.errors import UsageError
from unrolled.whole_number import whole_number

__all__ = ["CLOSES", "Attribution", "NGram"]

_WHOLE, _ENDS = 24, 10  # tokens of the longest n-gram whose text a record has whole, and of each end of a longer one's
CLOSES = 1e-3
"""The largest remainder of an account that closes, relative to the movement."""


@dataclass(frozen=True)
class NGram:
    """One n-gram of a sentence, the tokens ``[start, stop)``, as one direction of the network reads it."""

    start: int
    stop: int
    text: str
    direction: str
    score: float
    contribution: float
    sequence: str = ""
    """Name of its sequence, where an output is made of several."""

    @property
    def order(self) -> int:
        """Number of tokens."""
        return self.stop - self.start


@dataclass(frozen=True, eq=False)
class Attribution(OwnMemory):
    """The n-grams and the ledger of one logit of one sequence. All tensors are float64 on the CPU.

    An n-gram or phrase is named by ``start`` and ``stop``, the indices of its first token and after its last one. The
    methods that take them add up the directions, unless ``direction`` is ``"forward"`` or ``"backward"``. They raise a
    ``UsageError`` if the span is empty, outside the sentence or longer than ``max_order``, or the network does not have
    the direction.
    """

    tokens: tuple[str, ...]
    """The words that the sequence reads, as they were given; else their ids."""
    directions: tuple[str, ...]
    """``("forward",)`` or ``("forward", "backward")``."""
    triangle: Triangle
    ledger: Ledger
    """The parts of the logit: n-grams, initial state, bias and remainder."""
    target: str
    """Name of the logit: ``"output 1"``, or a class; ``"output"`` where the model has one output."""
    expansion: str
    exact: bool
    """Whether the n-grams sum to the state and the account closes: rounding and quadrature did not prevent it."""
    local: bool
    """Whether an n-gram's term depends on its own tokens alone."""
    residual: float
    """Largest relative error, over positions, of the sum of the n-grams against the network's own state."""
    parity: float
    """Largest difference between the recomputed states and the network's own."""
    notes: tuple[str, ...] = field(default=())
    """What a reader has to know of this explanation."""
    biases: Mapping[str, float] = field(default_factory=dict)
    """The parts of the bias by name, where the readout knows them."""
    max_order: int | None = None
    """Length of the longest n-grams in the triangle; None for all."""
    by_token: Tensor | None = None
    """Contributions of all n-grams that enter at each token, shape (time,), where the triangle does not tell: under
    ``max_order``, and in a bidirectional network of several layers; else None."""
    outputs: Outputs | None = None
    """All outputs of the model, if the explained one is a class or the difference of two."""
    features: Features | None = None
    """The numbers that the model read, where it reads numbers rather than words."""
    no_features: str = "the model reads no numbers step by step"
    """Why there are no features."""
    by_class: tuple[Attribution, ...] = ()
    """The attribution of each output of the model, by index; empty if they were not computed."""
    deterministic: bool = True
    """Whether the model gives this output without drawing random numbers; else this explains one draw."""
    rounding: float = 0.0
    """Relative rounding of the type of least precision in which the model computed the logit."""
    name: str = ""
    """Name of the sequence, where an output is made of several."""
    leaves_out: bool = False
    """Whether the expansion itself leaves a part of the states out, whatever the numbers are."""
    unit: str = "logit"
    """What the explained number is called: ``"logit"``, ``"probability"`` or ``"log-probability"``; ``"output"`` of a
    model that has one and of a target that is a function, ``"difference"`` of two."""

    def __len__(self) -> int:
        return len(self.tokens)

    def score(self, start: int, stop: int, direction: str | None = None) -> float:
        """Return the score of one n-gram: what it would contribute if it ended where the model reads most."""
        return self._sum_directions(self.triangle.score_band, start, stop, direction)

    def contribution(self, start: int, stop: int, direction: str | None = None) -> float:
        """Return the contribution of one n-gram: its part of the logit."""
        return self._sum_directions(self.triangle.contribution_band, start, stop, direction)

    def phrase_score(self, start: int, stop: int, direction: str | None = None) -> float:
        """Return the score of a phrase: the sum of the scores of all n-grams inside it that end at its end.

        In the forward direction the end is the last token; in the backward direction it is the first token.

        Args:
            start: Index of the first token.
            stop: Index after the last token.
            direction: ``"forward"`` or ``"backward"``; None for the sum over the directions of the network.
        """
        start, stop = self._checked_span(start, stop)
        total = 0.0
        for d in self._direction_indices(direction, start):
            read = stop - 1 if self.directions[d] == "forward" else start
            total += float(self.triangle.score_band[d, read, : stop - start].sum())
        return total

    @cached_property
    def token_scores(self) -> Tensor:
        """Contributions of all n-grams that enter at each token, shape (time,); their sum is ``ledger["ngrams"]``."""
        if self.by_token is not None:
            return self.by_token
        return by_entered(self.triangle.contribution_band)

    @property
    def feature_scores(self) -> Tensor:
        """Contribution of each number that the model read, shape (time, features).

        The features of a step and ``features.rest`` add up to its entry of ``token_scores``.

        Raises:
            UsageError: If the model reads no numbers step by step; ``features`` is then None.
        """
        if self.features is None:
            raise UsageError(
                f"there are no contributions of features: {self.no_features}; token_scores has those of the steps"
            )
        return self.features.scores

    @property
    def longest(self) -> int:
        """Length of the longest n-grams that are told apart."""
        return len(self) if self.max_order is None else min(self.max_order, len(self))

    @property
    def longer(self) -> float:
        """Contribution of the n-grams longer than ``max_order``; 0 where the triangle holds all."""
        return 0.0 if self.max_order is None else self.ledger.ngrams - float(self.triangle.contribution_band.sum())

    def ngrams(self) -> Iterator[NGram]:
        """Iterate over the n-grams of every direction, by start and length, up to ``max_order``."""
        for d in range(len(self.directions)):
            for start in range(len(self)):
                for stop in range(start + 1, min(start + self.longest, len(self)) + 1):
                    yield self._ngram(d, start, stop)

    def top(self, k: int = 10) -> list[NGram]:
        """Return the k n-grams with the largest absolute contribution, the largest first.

        N-grams that contribute nothing are left out.

        Raises:
            UsageError: If k is no whole number, or negative.
        """
        k = checked_count("k", k)
        band = self.triangle.contribution_band
        sizes = band.abs().flatten()
        largest = sizes.topk(min(k, sizes.numel()))
        found = []
        for size, place in zip(largest.values.tolist(), largest.indices.tolist(), strict=True):
            if size > 0:
                d, rest = divmod(place, band[0].numel())
                read, further = divmod(rest, band.shape[-1])
                start = read - further if self.directions[d] == "forward" else read
                found.append(self._ngram(d, start, start + further + 1))
        return found

    def to_records(self) -> list[dict[str, object]]:
        """Return every n-gram as a dictionary, for JSON, CSV or a data frame.

        Of more than 24 tokens the text is the first and the last ten; ``tokens[start:stop]`` has all.
        """
        return [self._record(ngram) for ngram in self.ngrams()]

    @property
    def movement(self) -> float:
        """The logit less the bias: what n-grams and initial state account for."""
        return self.ledger.logit - self.ledger.bias

    @property
    def closes(self) -> bool:
        """Whether the remainder is at most 1e-3 of the movement, or the rounding of the logit."""
        allowed = max(CLOSES * abs(self.movement), 4 * self.rounding * abs(self.ledger.logit))
        return abs(self.ledger.remainder) <= allowed

    @property
    def cancellation(self) -> float:
        """``Σ|c| / |Σc|`` over the contributions of all n-grams and of the initial state; 1 if all have one sign.

        N-grams longer than ``max_order`` count as one.
        """
        sizes = float(self.triangle.contribution_band.abs().sum()) + abs(self.longer) + abs(self.ledger.initial)
        net = abs(self.ledger.ngrams + self.ledger.initial)
        return 1.0 if not sizes else sizes / net if net else math.inf

    @property
    def relative_remainder(self) -> float:
        """The remainder relative to the logit, ``|remainder| / |logit|``; infinite if the logit alone is 0."""
        remainder, logit = abs(self.ledger.remainder), abs(self.ledger.logit)
        return remainder / logit if logit else math.inf if remainder else 0.0

    def _record(self, n: NGram) -> dict[str, object]:
        tokens = self.tokens[n.start : n.stop]  # whole, all texts would grow with the third power of the length
        text = n.text if len(tokens) <= _WHOLE else " ".join((*tokens[:_ENDS], "…", *tokens[-_ENDS:]))
        return {"start": n.start, "stop": n.stop, "order": n.order, **asdict(n), "text": text}

    def _checked_span(self, start: int, stop: int) -> tuple[int, int]:
        first, last = whole_number(start), whole_number(stop)
        if first is None or last is None or not 0 <= first < last <= len(self):
            raise UsageError(f"no tokens in [{start}, {stop}); expected 0 <= start < stop <= {len(self)}, its length")
        if self.max_order is not None and last - first > self.max_order:
            raise UsageError(
                f"[{start}, {stop}) has {last - first} tokens, and n-grams of more than {self.max_order} were not told "
                f"apart; expected at most {self.max_order} tokens: pass a larger max_order to explain"
            )
        return first, last

    def _direction_indices(self, direction: str | None, start: int) -> list[int]:
        """Return the places of the directions in which the tokens from ``start`` on are read."""
        if direction is None:
            return list(range(len(self.directions)))
        if direction not in self.directions:
            raise UsageError(f"unknown direction {direction!r}; expected one of: {', '.join(self.directions)}")
        return [self.directions.index(direction)]

    def _sum_directions(self, bands: Tensor, start: int, stop: int, direction: str | None) -> float:
        start, stop = self._checked_span(start, stop)
        return sum(self._entry(bands, d, start, stop) for d in self._direction_indices(direction, start))

    def _entry(self, bands: Tensor, d: int, start: int, stop: int) -> float:
        """The entry of the n-gram [start, stop): read at its last token forward, at its first backward."""
        read = stop - 1 if self.directions[d] == "forward" else start
        return float(bands[d, read, stop - start - 1])

    def _ngram(self, d: int, start: int, stop: int) -> NGram:
        return NGram(
            start=start,
            stop=stop,
            text=" ".join(self.tokens[start:stop]),
            direction=self.directions[d],
            score=self._entry(self.triangle.score_band, d, start, stop),
            contribution=self._entry(self.triangle.contribution_band, d, start, stop),
            sequence=self.name,
        )
