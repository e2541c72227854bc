"""Tables of networks that are changed in one setting, beside the published numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from unrolled.lab.papers.framework.experiment import SPLITS, Result, average, training_cell, where
from unrolled.lab.papers.framework.table import Number, Table

__all__ = ["dev_test_table", "error_table"]

Pairs = Iterable[tuple[str, str]]
"""Networks, each with the name of its change: settings of the trials."""


def error_table(title: str, results: Sequence[Result], pairs: Pairs, published: Mapping[str, float]) -> Table:
    """Tabulate the errors of the hidden states; the published ones, in percent, are those of a step at zero."""
    rows: list[Sequence[str | Number]] = []
    for network, change in pairs:
        if found := where(results, network=network, changed=change):
            share = partial(average, found, digits=1, percent=True)
            measured = (share("step_zero", published[network] / 100), share("sum_zero"), average(found, "state"))
            rows.append((network, change, *measured, share("dev_accuracy")))
    return Table(title, ("network", "changed", "step, zero", "sum, zero", "‖h‖", "dev accuracy"), rows)


def dev_test_table(
    title: str,
    results: Sequence[Result],
    pairs: Pairs,
    metric: str,
    published: Mapping[str, Sequence[float | None]],
    *counts: str,
) -> Table:
    """Tabulate a metric on dev and test, in percent, and the means of some counts, for each pair that ran.

    ``published`` begins with the numbers on dev and test; those of other corpora may follow.
    """
    rows: list[Sequence[str | Number]] = []
    for network, change in pairs:
        if found := where(results, network=network, changed=change):
            cells = (
                training_cell(found, f"{split}_{metric}", theirs and theirs / 100, percent=True)
                for split, theirs in zip(SPLITS, published[network], strict=False)
            )
            rows.append((network, change, *cells, *(average(found, name, digits=0) for name in counts)))
    return Table(title, ("network", "changed", *SPLITS, *(name.replace("_", " ") for name in counts)), rows)
