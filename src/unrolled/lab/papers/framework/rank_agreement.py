"""How models stand to each other, ours beside theirs: what can be compared when a training is smaller than theirs.

Figures of a small training are not the published ones; but which of two models is ahead, and the order of them all,
may well be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import StatisticsError, correlation, fmean

from unrolled.lab.papers.framework.table import MISSING, Number

__all__ = ["Column", "cell", "gaps", "order_agreement", "order_sentence"]

Column = Mapping[str, Number]
"""One column of a table: for each model its figure, ours and theirs."""

_FEWEST = 3


def order_agreement(column: Column) -> float | None:
    """Correlate the ranks that models have with us and with them: Spearman's ρ, ties sharing their mean rank.

    Args:
        column: whatever lacks one of its two figures is left out.

    Returns:
        From -1 to 1; None for fewer than three models, or where all are alike.
    """
    both = [(fmean(each.ours), each.theirs) for each in column.values() if each.ours and each.theirs is not None]
    if len(both) < _FEWEST:
        return None
    ours, theirs = (_ranks(values) for values in zip(*both, strict=True))
    try:
        return correlation(ours, theirs)
    except StatisticsError:  # one of them is constant
        return None


def order_sentence(columns: Mapping[str, Column]) -> str | None:
    """Say how far the order of the models is the published one.

    Args:
        columns: by the column's name.

    Returns:
        A sentence; None when no column has enough models.
    """
    found = {name: order_agreement(column) for name, column in columns.items()}
    told = [f"{name} {rho:+.2f}" for name, rho in found.items() if rho is not None]
    if not told:
        return None
    return f"The order of the models against the published order, Spearman's ρ: {', '.join(told)}."


def gaps(first: str, second: str, columns: Mapping[str, Column], digits: int = 1) -> str | None:
    """Say how far one model is from another, column by column, and whether the sign is the published one.

    Args:
        first: the one.
        second: the other, which is subtracted.
        columns: by the column's name.
        digits: behind the point.

    Returns:
        A sentence; None when no column has both models of ours.
    """
    told, same, asked = [], 0, 0
    for name, column in columns.items():
        one, other = (column.get(model, Number()) for model in (first, second))
        if not (one.ours and other.ours):
            continue
        scale = 100 if one.percent else 1
        ours = scale * (fmean(one.ours) - fmean(other.ours))
        theirs = MISSING
        if one.theirs is not None and other.theirs is not None:
            published = scale * (one.theirs - other.theirs)
            theirs = f"{published:+.{digits}f}"
            if published:  # two figures that are alike have no sign
                asked, same = asked + 1, same + (ours * published > 0)
        told.append(f"{name} {ours:+.{digits}f} ({theirs})")
    if not told:
        return None
    verdict = f"; the published sign in {same} of {asked}" if asked else ""
    return f"{first} less {second}, published in brackets: {', '.join(told)}{verdict}."


def cell(number: Number, *, ran: bool) -> str | Number:
    """Write a cell of a table in which trainings may have failed, ours or theirs.

    Args:
        number: of the trainings that came to an end.
        ran: whether any began.

    Returns:
        That ours diverged, where they began and none ended; a dash in brackets, where there is nothing of theirs.
    """
    known = number.theirs is not None
    if number.ours or not ran:
        return number if known else f"{number} ({MISSING})"
    # a number of which nothing is known is written as one dash, with theirs it is a dash and theirs
    return str(number).replace(MISSING, "diverged", 1) if known else f"diverged ({MISSING})"


def _ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values
    ]
