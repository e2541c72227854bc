"""Tables of ``gradients``: norms of Jacobians, their bound, and how well a name is recalled.

The results are trainings with Adam, but those of the last table, which has every way.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from unrolled.lab.papers.analyses.sentences import greeting_corpus
from unrolled.lab.papers.framework.experiment import Result, where
from unrolled.lab.papers.framework.table import MISSING, Number, Table

__all__ = ["STAGES", "Stage", "bound_table", "curve", "named", "norm_table", "of_cell", "recall_table"]

Stage = tuple[str, float | None]
"""Before or after training, and the norm to which gradients are clipped."""
_STAGE_NAMES = ("untrained", "trained, clipped", "trained, not clipped")
STAGES: tuple[Stage, ...] = (("before", 1.0), ("after", 1.0), ("after", None))
"""What :data:`_STAGE_NAMES` names."""


def of_cell(results: Sequence[Result], cell: str, clip: float | None, way: str = "adam") -> list[Result]:
    """Select the trainings of a cell, with or without clipping."""
    return where(results, cell=cell, optimiser=way, clip=clip)


def curve(results: Sequence[Result], cell: str, stage: Stage, what: str) -> list[float]:
    """Take the median over the seeds whose norms are finite."""
    when, clip = stage
    curves = [result[when][what] for result in of_cell(results, cell, clip) if result[when] is not None]
    return [median(values) for values in zip(*curves, strict=True)]


def named(cell: str) -> str:
    """Name a cell whose recurrent weights start at the identity, U = I, as the findings do."""
    return cell.replace(", identity", " from U = I")


def _bounds(results: Sequence[Result], cell: str, stage: Stage) -> list[float]:
    when, clip = stage
    return [result[when]["bound"] for result in of_cell(results, cell, clip) if result[when] is not None]


def _bound(results: Sequence[Result], cell: str, distance: int, stage: Stage) -> str:
    found = _bounds(results, cell, stage)
    return f"{median(found) ** distance:.1e}" if found else MISSING


def _factor(results: Sequence[Result], cell: str) -> str:
    found = _bounds(results, cell, STAGES[0])
    return f"× {median(found):.3f}" if found else MISSING


def _norm(results: Sequence[Result], cell: str, distance: int, stage: Stage) -> str:
    norms = curve(results, cell, stage, "jacobian")
    return f"{norms[distance]:.1e}" if norms else MISSING


def _per_step(results: Sequence[Result], cell: str, distance: int) -> str:
    norms = curve(results, cell, STAGES[0], "jacobian")
    return f"× {norms[distance] ** (1 / distance):.3f}" if norms else MISSING


def _recall(results: Sequence[Result], distances: Sequence[int]) -> list[str | Number]:
    ended = [result for result in results if result["accuracy"] is not None]
    accuracies: list[str | Number] = [
        Number([result["accuracy"][str(distance)] for result in ended], digits=1, percent=True)
        for distance in distances
    ]
    longest = max(result["longest_gradient"] for result in results)
    return [*accuracies, f"{longest:.3g}", f"{len(results) - len(ended)} of {len(results)}"]


def norm_table(results: Sequence[Result], cells: Sequence[str], far: int) -> Table:
    """Tabulate the norms at a distance, before and after training."""
    rows = [
        (named(cell), _per_step(results, cell, far), *(_norm(results, cell, far, stage) for stage in STAGES))
        for cell in cells
        if where(results, cell=cell)
    ]
    title = f"‖∂h_T/∂s_(T-k)‖, spectral norm, mean over texts, median over seeds; k = {far}"
    return Table(title, ("cell", "per step, untrained", *_STAGE_NAMES), rows)


def bound_table(results: Sequence[Result], cells: Sequence[str], far: int) -> Table:
    """Tabulate the bound of the norms, of the cells that have one."""
    rows = [
        (named(cell), _factor(results, cell), *(_bound(results, cell, far, stage) for stage in STAGES))
        for cell in cells
        if any(result["before"]["bound"] is not None for result in where(results, cell=cell))
    ]
    title = f"The bound (β_W β_h)^k of the plain cells' Jacobians, median over seeds; k = {far}"
    return Table(title, ("cell", "β_W β_h, untrained", *_STAGE_NAMES), rows)


def recall_table(
    results: Sequence[Result], ways: Sequence[tuple[str, float | None, str]], far: int, beyond: int
) -> Table:
    """Tabulate the accuracies at the longest distance of training and beyond, by cell, clipping and optimiser."""
    rows = [
        (f"{named(cell)}, {way}", "at 1" if clip else "no", *_recall(chosen, (far, beyond)))
        for cell, clip, way in ways
        if (chosen := of_cell(results, cell, clip, way))
    ]
    title = (
        f"Accuracy, %, of predicting the second name (chance {100 / (len(greeting_corpus.NAMES) - 1):.0f}); "
        f"trained on distances {greeting_corpus.NEAREST} to {far}"
    )
    columns = ("cell, optimiser", "clipped", f"distance {far}", f"distance {beyond}", "largest gradient", "diverged")
    return Table(title, columns, rows)
