"""Averages of results over seeds, as numbers of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from unrolled.lab.papers.framework.experiment import Result, where
from unrolled.lab.papers.framework.table import Number, cell

__all__ = ["average", "dev_test_rows", "training_cell"]


def average(
    results: Sequence[Result], name: str, theirs: float | None = None, *, digits: int = 2, percent: bool = False
) -> Number:
    """Average a value over the results that have it: a training that diverged has none."""
    return Number([float(result[name]) for result in results if name in result.values], theirs, digits, percent)


def training_cell(
    results: Sequence[Result], name: str, theirs: float | None, *, digits: int = 1, percent: bool = False
) -> str | Number:
    """Average a value over trainings that may diverge, ours or the published one; no results mean that none ran."""
    return cell(average(results, name, theirs, digits=digits, percent=percent), ran=bool(results))


def dev_test_rows(
    results: Sequence[Result],
    published: Mapping[str, Sequence[float | None]],
    columns: Mapping[str, Sequence[str]],
    metric: str,
    *,
    percent: bool = False,
) -> list[Sequence[str | Number]]:
    """Make a row for each model that ran: a metric on dev and test of every value of a setting.

    ``columns`` holds the values by the setting's name. The published numbers stand in the order of the cells, in
    percent if ``percent``, while our values are shares.
    """
    ((setting, values),) = columns.items()
    rows: list[Sequence[str | Number]] = []
    for model, numbers in published.items():
        if where(results, model=model):
            cells = [
                training_cell(
                    where(results, model=model, **{setting: value}),
                    f"{split}_{metric}",
                    number / 100 if number and percent else number,
                    percent=percent,
                )
                for (value, split), number in zip(product(values, ("dev", "test")), numbers, strict=False)
            ]
            rows.append((model, *cells))
    return rows
