"""The explanation of one sequence, from the scores of its n-grams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.decomposition.attribution.bands import kept_steps
from unrolled.decomposition.attribution.ledger import Ledger
from unrolled.decomposition.attribution.number_notes import NOTED_RESIDUAL
from unrolled.decomposition.attribution.score_ngrams import NGramScores
from unrolled.decomposition.attribution.triangle import Triangle
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.notes import with_limits
from unrolled.explanation.request import Request

__all__ = ["ScoredSequence"]


@dataclass(frozen=True)
class ScoredSequence:
    """One sequence whose n-grams are scored, and what the run of its network says of it."""

    ngrams: NGramScores
    row: int
    """The sequence's, among the scores."""
    steps: Tensor
    """The steps that are the sequence's, in order, shape (tokens,), on the CPU."""
    directions: int
    coupled: bool
    """Whether a path from a token to a state may turn between the directions."""
    parity: float
    dtype: torch.dtype
    """The type of least precision in which the model computed."""
    failures: tuple[str, ...]
    """Why a quadrature is not to be trusted."""

    def explanation(
        self,
        asked: Request,
        with_features: Callable[[Explanation], Explanation],
        *,
        tokens: tuple[str, ...],
        ledger: Ledger,
        biases: Mapping[str, float],
        target: str,
        unit: str,
        notes: tuple[str, ...],
        deterministic: bool,
        name: str = "",
    ) -> Explanation:
        """Make the explanation, with its features and with notes on what limits it; ``exact`` if its terms are."""
        expansion, longest = asked.expansion, self.ngrams.longest
        residual = float(self.ngrams.residual[self.row])
        limited = longest is not None and longest < len(tokens)
        plain = Explanation(
            tokens=tokens,
            directions=("forward", "backward")[: self.directions],
            triangle=Triangle(self._kept(self.ngrams.scores), self._kept(self.ngrams.contributions)),
            ledger=ledger,
            target=target,
            unit=unit,
            expansion=str(expansion),
            exact=expansion.exact and not self.failures and residual <= NOTED_RESIDUAL,
            local=expansion.local,
            leaves_out=not expansion.exact,
            residual=residual,
            parity=self.parity,
            notes=notes,
            biases=biases,
            deterministic=deterministic,
            rounding=torch.finfo(self.dtype).eps,
            name=name,
            max_order=longest if limited else None,
            by_token=self.ngrams.tokens[self.row][self.steps] if limited or self.coupled else None,
        )
        no_order = asked.max_order is None and not self.coupled
        return with_limits(with_features(plain), expansion, self.failures, no_order)

    def _kept(self, bands: Tensor) -> Tensor:
        return kept_steps(bands[self.row], self.steps)
