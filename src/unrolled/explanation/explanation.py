"""An account that shows itself: in a terminal, a notebook, a figure, a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.decomposition.attribution import Attribution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unrolled.report.colour import Quantity

__all__ = ["Explanation"]


@dataclass(frozen=True, repr=False)
class Explanation(Attribution):
    """Where one logit of one sequence came from, and the ways to look at it.

    Example:
        >>> import torch, unrolled
        >>> class Tagger(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embed, self.rnn = torch.nn.Embedding(9, 4), torch.nn.GRU(4, 6, batch_first=True)
        ...         self.head = torch.nn.Linear(6, 2)
        ...     def forward(self, tokens):
        ...         return self.head(self.rnn(self.embed(tokens))[0][:, -1])
        >>> found = unrolled.explain(Tagger(), torch.tensor([[1, 2, 3]]), target=1, tokens=["not", "a", "bore"])
        >>> len(found.to_records())
        6
        >>> total = found.ledger.ngrams + found.ledger.initial + found.ledger.bias + found.ledger.remainder
        >>> abs(total - found.ledger.logit) < 1e-9
        True
    """

    def figure(self, quantity: Quantity = "score", limit: float | None = None) -> Figure:
        """Draw the triangle of n-grams.

        Args:
            quantity: ``"score"`` or ``"contribution"``.
            limit: the end of the colour scale, to compare figures; its own largest value when left out.

        Returns:
            A matplotlib figure.
        """
        from unrolled.report.figure import triangle_figure

        return triangle_figure(self, quantity, limit)

    def save_html(self, path: str | Path, *others: Attribution) -> Path:
        """Write one self-contained page: the sentence, the triangle, the ledger.

        Args:
            path: the file.
            *others: the same logit under other expansions, to stand beside this one.

        Returns:
            The path.
        """
        from unrolled.report.page import save_page

        save_page(path, (self, *others))
        return Path(path)

    def render(self, width: int = 100, colour: bool = False) -> str:
        """Write the account for a terminal.

        Args:
            width: columns.
            colour: whether to use ANSI colours.

        Returns:
            The text.
        """
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
