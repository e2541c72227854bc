"""What the accounts of a classifier leave over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unrolled.explanation.api import explain
from unrolled.lab.training.run_folder import Run

__all__ = ["largest_remainder"]


def largest_remainder(run: Run, texts: Sequence[Any]) -> float:
    """Open a classifier on some texts and hold every ledger's remainder against its logit.

    Args:
        run: of the task classify, with a recurrent encoder.
        texts: examples of its corpus.

    Returns:
        The largest remainder, as a share of the logit.
    """
    split, shares = run.task.encode(texts), list[float]()
    for which in split.plan(len(texts)):
        batch = split.select(which)
        found = explain(run.model, batch.tokens, batch.lengths, target=1)
        shares += [abs(e.ledger.remainder / e.ledger.logit) for e in (found if isinstance(found, list) else [found])]
    return max(shares)
