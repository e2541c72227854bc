"""The result of :func:`unrolled.account`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from unrolled.errors import UsageError, kind_of
from unrolled.report.account_view import AccountView
from unrolled.report.frames import to_frame
from unrolled.whole_model.account_json import save_json
from unrolled.whole_model.accounted_output import AccountedOutput
from unrolled.whole_model.records import records_of
from unrolled.whole_model.view import view_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Account"]


@dataclass(frozen=True, repr=False, eq=False)
class Account(AccountedOutput):
    r"""What every token, feature, bias and initial state contributed to one output of each example.

    .. math:: \text{output} = \text{tokens} + \text{features} + \text{initial states} + \text{biases}
        + \text{constants} + \text{remainder}

    Contributions are in the unit of the output (a logit). What is held is no part of them: the values that gates,
    attention weights, slopes and scales of normalisations took. ``print(account)`` shows the first example in a
    terminal; a notebook shows it as HTML. ``len(account)`` is the number of examples, ``account[i]`` is one of them.

    Example:
        >>> import torch, unrolled
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        >>> found = unrolled.account(model, torch.randn(5, 3), target=1)
        >>> found.features["0"].shape, sorted(found.biases)
        (torch.Size([5, 3]), ['0.bias', '2.bias'])
    """

    @property
    def ledger(self) -> dict[str, float]:
        """The parts of the first example's output; ``account[i].ledger`` are those of another one.

        Example:
            >>> import torch, unrolled
            >>> model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
            >>> list(unrolled.account(model, torch.randn(1, 3), target=1).ledger)
            ['inputs', 'initial states', 'biases', 'constants', 'remainder', 'output']
        """
        one = self[0]
        return {
            "inputs": float(one.inputs),
            "initial states": float(one.initial),
            "biases": float(sum(one.biases.values())),
            "constants": float(sum(one.constants.values())),
            "remainder": float(one.remainder),
            "output": float(one.output),
        }

    def compare(self, other: Account) -> dict[str, float]:
        """Compare two accounts of the same output.

        Returns:
            ``correlation`` of the contributions of tokens and features, NaN where those of an account are all the same,
            and the ``largest`` absolute difference.

        Raises:
            UsageError: If the accounts are of different arguments or outputs, or the other is none.
        """
        if not isinstance(other, Account):
            raise UsageError(f"expected an account to compare with, found {kind_of(other)}")
        mine, theirs = (
            torch.cat([part.reshape(-1) for part in each._by_argument.values()]).double() for each in (self, other)
        )
        same = self.output.shape == other.output.shape and mine.shape == theirs.shape
        if not same or not torch.allclose(self.output, other.output.to(self.output), rtol=1e-3, atol=1e-5):
            raise UsageError("the accounts are of different outputs: account for one model on the same arguments")
        return {
            "correlation": float(torch.corrcoef(torch.stack((mine, theirs)))[0, 1]) if len(mine) > 1 else math.nan,
            "largest": float((mine - theirs).abs().max()),
        }

    def to_records(self) -> list[dict[str, object]]:
        """Return every contribution of every example as a record; those of an example sum to its output.

        ``kind`` is ``"token"``, ``"feature"``, ``"initial state"``, ``"bias"``, ``"constant"`` or ``"remainder"``.
        ``source`` is the argument or the name of the parameter; ``step``, ``label`` (the token) and ``feature`` say
        which entry of the argument.

        Example:
            >>> import torch, unrolled
            >>> model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
            >>> rows = unrolled.account(model, torch.randn(1, 3), target=1, features=["a", "b", "c"]).to_records()
            >>> [row["feature"] or row["source"] or row["kind"] for row in rows]
            ['a', 'b', 'c', 'initial state', '0.bias', '2.bias', 'remainder']
        """
        return records_of(self)

    def to_frame(self) -> Any:
        """Return :meth:`to_records` as a data frame: of pandas, or of polars where pandas is not installed.

        Raises:
            UsageError: If neither is installed.
        """
        return to_frame(self.to_records())

    def render(self, width: int = 100, colour: bool = False, example: int = 0) -> str:
        """Return one example as text for a terminal of ``width`` columns, with ANSI colours if ``colour``."""
        from unrolled.report.account_terminal import to_text

        return to_text(self.view(example), width=width, colour=colour)

    def figure(self, example: int = 0, limit: float | None = None) -> Figure:
        """Draw the contributions of one example; needs matplotlib.

        Args:
            example: Index of the example.
            limit: Value at the ends of the colour scale; None for the largest value.

        Raises:
            UsageError: If matplotlib is missing or the limit is not above 0.
        """
        from unrolled.report.account_figure import account_figure

        return account_figure(self.view(example), limit)

    def save_html(self, path: str | Path, example: int | None = None) -> Path:
        """Write a self-contained HTML page, and return its path.

        Args:
            path: The file to write; one that exists is replaced.
            example: Index of the only example to show; None for all of the batch.

        Raises:
            UsageError: If the path is that of another format.
            FileError: If the file cannot be written.
            NonFiniteError: If the account holds NaN or infinity.
        """
        from unrolled.report.account_page import save_page

        shown = range(len(self)) if example is None else [example]
        save_page(path, [self.view(k) for k in shown], self.target if example is None else None)
        return Path(path)

    def save_json(self, path: str | Path) -> Path:
        """Write the contributions, the ledger and the notes of every example as JSON, and return the path.

        The docstring of ``unrolled.whole_model.account_json`` describes the file.

        Raises:
            UsageError: If the path is that of another format.
            FileError: If the file cannot be written.
        """
        save_json(path, [one.ledger for one in self], self)
        return Path(path)

    def view(self, example: int = 0) -> AccountView:
        """Return what terminal, figure and page show of one example."""
        return view_of(self, example)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value:.4g}" for name, value in self.ledger.items())
        return f"Account({self.target}, {len(self)} examples, {self.expansion}; first: {parts})"

    def __str__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        from unrolled.report.account_page import render_fragment

        return render_fragment(self.view())
