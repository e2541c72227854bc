"""What a page shows of an account, laid out: labels, the steps of the ledger, the cells of the triangle.

Cells are stored by row, one row for each length of n-gram, so that row k - 1 holds the n-grams of k tokens by
their first token; that is also how the triangle stands on its sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.decomposition.attribution import Attribution, Ledger
from unrolled.errors import UsageError
from unrolled.report.formatting import clip, visible

__all__ = ["CELLS", "Bar", "labels", "longest_shown", "payload", "rows", "waterfall"]

CELLS = 6000
"""The most cells of one triangle that a page holds: all n-grams of 109 tokens, the shorter ones of more."""

_TOKEN = 80
"""Characters of one token that the hover text holds."""


@dataclass(frozen=True)
class Bar:
    """One entry of the ledger, drawn from where the entries before it ended."""

    name: str
    value: float
    left: float
    """Where it begins, from 0 at the left edge to 1000 at the right."""
    width: float
    zero: float
    """Where zero lies, the same for all bars of a ledger."""


def waterfall(ledger: Ledger) -> list[Bar]:
    """Lay the ledger out: each entry starts where the one before it ended, the logit starts at zero.

    Args:
        ledger: four entries and their sum.

    Returns:
        Five bars, the logit last.
    """
    entries = [
        ("n-grams", ledger.ngrams),
        ("initial state", ledger.initial),
        ("bias", ledger.bias),
        ("remainder", ledger.remainder),
    ]
    spans, reached = [], 0.0
    for name, value in entries:
        spans.append((name, value, reached, reached + value))
        reached += value
    spans.append(("logit", ledger.logit, 0.0, ledger.logit))
    ends = [0.0, *(end for _, _, start, stop in spans for end in (start, stop))]
    low, high = min(ends), max(ends)
    scale = 1000 / (high - low) if high > low else 0.0
    return [
        Bar(
            name=name,
            value=value,
            left=round((min(start, stop) - low) * scale, 2),
            width=round(abs(stop - start) * scale, 2),
            zero=round(-low * scale, 2),
        )
        for name, value, start, stop in spans
    ]


def labels(accounts: Sequence[Attribution]) -> list[str]:
    """Name each account by what sets it apart: its expansion, then its target, then its place in the list.

    Args:
        accounts: what is shown together.

    Returns:
        One label each, no two alike.
    """
    several = len({account.target for account in accounts}) > 1
    plain = [f"{a.expansion}, {a.target}" if several else a.expansion for a in accounts]
    return [f"{name} ({k + 1})" if plain.count(name) > 1 else name for k, name in enumerate(plain)]


def longest_shown(account: Attribution) -> int:
    """Give the length of the longest n-grams that the page's triangle holds.

    Args:
        account: of a sentence of any length.

    Returns:
        A number of tokens, 1 or more.
    """
    time = len(account)
    if time * (time + 1) // 2 <= CELLS:
        return time
    return max(1, CELLS // time)


def rows(matrix: Tensor, direction: str, longest: int) -> list[list[float]]:
    """Lay one direction's matrix out by length and first token.

    Args:
        matrix: scores or contributions by position read and position entered, shape (time, time).
        direction: ``"forward"`` or ``"backward"``.
        longest: how many rows.

    Returns:
        Row k - 1 holds the n-grams of k tokens, by their first token.
    """
    # Forward, an n-gram is read below the diagonal, at its end; backward above it, at its beginning.
    sign = -1 if direction == "forward" else 1
    return [torch.diagonal(matrix, sign * (order - 1)).tolist() for order in range(1, longest + 1)]


def _short(numbers: list[list[float]]) -> list[list[float]]:
    """Keep six digits: what the hover text shows and more, at half the bytes."""
    return [[float(f"{x:.6g}") for x in row] for row in numbers]


def payload(account: Attribution, label: str) -> dict[str, object]:
    """Collect what the page's script draws the triangles from.

    Args:
        account: what is drawn.
        label: its name on the page.

    Returns:
        Tokens as they are shown, and rows of scores and contributions for each direction; ready for JSON.

    Raises:
        UsageError: when the sentence is empty.
    """
    if not len(account):
        raise UsageError("the account has no tokens; expected at least one")
    longest = longest_shown(account)
    triangle = account.triangle
    return {
        "label": label,
        "tokens": [clip(visible(token), _TOKEN) for token in account.tokens],
        "directions": [
            {
                "name": direction,
                "score": _short(rows(triangle.scores[d], direction, longest)),
                "contribution": _short(rows(triangle.contributions[d], direction, longest)),
            }
            for d, direction in enumerate(account.directions)
        ],
    }
