"""The result of :func:`unrolled.explain`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.errors import UsageError, kind_of
from unrolled.report.frames import to_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unrolled.report.figure import Drawn

__all__ = ["Explanation", "refuse_others"]


@dataclass(frozen=True, repr=False, eq=False)
class Explanation(Attribution):
    """The n-grams and the ledger of one logit of one sequence, with ways to show them.

    ``print(explanation)`` shows it in a terminal; a notebook shows it as HTML. ``len(explanation)`` is the number of
    tokens. ``exact`` tells whether the n-grams of the expansion sum to the state, ``local`` whether an n-gram's term
    depends on its own tokens alone.

    Example:
        >>> import torch, unrolled
        >>> class Classifier(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embed, self.rnn = torch.nn.Embedding(9, 4), torch.nn.GRU(4, 6, batch_first=True)
        ...         self.head = torch.nn.Linear(6, 2)
        ...     def forward(self, tokens):
        ...         return self.head(self.rnn(self.embed(tokens))[0][:, -1])
        >>> found = unrolled.explain(Classifier(), torch.tensor([[1, 2, 3]]), target=1, tokens=["not", "a", "bore"])
        >>> found.top(1)[0].text in ("bore", "a bore", "not a bore")  # the model reads its last state
        True
        >>> parts = found.ledger.ngrams + found.ledger.initial + found.ledger.bias + found.ledger.remainder
        >>> abs(parts - found.ledger.logit) < 1e-9
        True
        >>> abs(found.ledger.remainder) < 1e-5  # the default expansion is exact
        True
    """

    @property
    def sequences(self) -> tuple[Explanation, ...]:
        """The sequences whose n-grams it holds: itself, or several where an output is made of several."""
        return (self,)

    def figure(self, quantity: Drawn | None = None, limit: float | None = None) -> Figure:
        """Draw the triangle of n-grams, or the numbers over time of a model that reads numbers; needs matplotlib.

        Args:
            quantity: ``"phrase"`` for the scores of phrases, ``"score"`` for the n-grams' own terms, ``"contribution"``
                for their parts of this logit; ``"features"`` for the numbers that the model read, which is the default
                where it read some.
            limit: Value at the ends of the colour scale, in units of the logit; None for the largest value. Set it to
                compare figures.

        Raises:
            UsageError: If matplotlib is missing, the sentence is empty, or an argument is out of its range.
        """
        from unrolled.report.figure import draw_figure

        return draw_figure(self, quantity, limit)

    def save_html(self, path: str | Path, *others: Attribution) -> Path:
        """Write one self-contained HTML page and return its path.

        Args:
            path: The file; an existing one is replaced.
            *others: Explanations of the same logit by other expansions, to show beside this one.

        Raises:
            UsageError: If a sentence is empty, others are no such explanations, or the path is that of another format.
            NonFiniteError: If an explanation holds NaN or infinity.
            FileError: If the file cannot be written.
        """
        from unrolled.report.page import save_page

        refuse_others(self, others)
        save_page(path, (self, *others))
        return Path(path)

    def save_json(self, path: str | Path) -> Path:
        """Write the n-grams, the ledger and the notes as JSON, as ``unrolled explain --json`` does; return the path.

        Raises:
            UsageError: If the path is that of another format.
            NonFiniteError: If the explanation holds NaN or infinity.
            FileError: If the file cannot be written.
        """
        from unrolled.report.json_records import save_json

        save_json(path, [self])
        return Path(path)

    def to_frame(self) -> Any:
        """Return every n-gram as a row of a data frame: of pandas, or of polars where pandas is not installed.

        Raises:
            UsageError: If neither is installed.
        """
        return to_frame(self.to_records())

    def features_to_frame(self) -> Any:
        """Return every number that was read as a row of a data frame, with what it contributed, as :meth:`to_frame`.

        The contributions of a step's rows, of which the last is its rest, sum to its entry of ``token_scores``.

        Raises:
            UsageError: If the explanation has no features, or neither pandas nor polars is installed.
        """
        if self.features is None:
            raise UsageError(f"there are no contributions of features: {self.no_features}")
        return to_frame(self.features.to_records(self.tokens))

    def render(self, width: int = 100, colour: bool = False) -> str:
        """Return the text for a terminal of ``width`` columns, with ANSI colours if ``colour``."""
        from unrolled.report.terminal import to_text

        return to_text(self, width=width, colour=colour)

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        parts = ", ".join(f"{key}={value:.4g}" for key, value in self.ledger.items())
        return f"Explanation({self.target}, {len(self)} tokens, {self.expansion}: {parts})"

    def _repr_html_(self) -> str:
        from unrolled.report.page import render_fragment

        return render_fragment(self)


def refuse_others(one: Attribution, others: Sequence[object]) -> None:
    """Refuse what cannot be shown beside an explanation.

    Raises:
        UsageError: If it is no explanation, or one of another text, target, model or seed.
    """
    for other in others:
        if not isinstance(other, Attribution):
            raise UsageError(f"what is shown beside this explanation is {kind_of(other)}; expected an explanation")
        named_alike = (other.tokens, other.target) == (one.tokens, one.target)
        if named_alike and not _nearly_one_logit(one, other):
            raise UsageError(
                "what is shown beside this explanation is one of another model, function of the outputs or seed: its "
                f"logit is {other.ledger.logit:.4g}, that of this one is {one.ledger.logit:.4g}; expected other "
                "expansions of this one"
            )
        if not named_alike and not _same_numbers(one, other):
            raise UsageError(
                "what is shown beside this explanation is one of another text or target; expected other expansions of "
                "this one; several texts stand on the page of unrolled.explain_batch(…).save_html"
            )


def _same_numbers(one: Attribution, other: Attribution) -> bool:
    """Whether what no expansion changes is the same, as where words or classes of only one of them have names."""
    pairs = ((one.ledger.logit, other.ledger.logit), (one.ledger.bias, other.ledger.bias))
    return len(one) == len(other) and all(math.isclose(*pair, rel_tol=1e-5, abs_tol=1e-7) for pair in pairs)


def _nearly_one_logit(one: Attribution, other: Attribution) -> bool:
    """Whether two logits differ by no more than runs of one model in bfloat16 do, alone and in a batch.

    They differ by the rounding of what sums to the logit, which is larger where it cancels.
    """
    parts = (one.ledger.logit, one.ledger.initial, *one.biases.values(), *one.token_scores.tolist())
    share = max(0.01, 4 * one.rounding, 4 * other.rounding)
    allowed = share * max(map(abs, parts)) + 1e-5
    return math.isclose(one.ledger.logit, other.ledger.logit, rel_tol=0.0, abs_tol=allowed)
