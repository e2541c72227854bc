"""The gallery: every figure that can be drawn from the archive, with the command that makes it and what it shows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Scale
from unrolled.lab.papers.framework.figure_style import save
from unrolled.lab.papers.framework.findings import current_findings
from unrolled.lab.papers.framework.result_store import Archive
from unrolled.lab.papers.framework.runner import collect

__all__ = ["draw_gallery"]

_HEAD = """# Gallery

Every figure of the experiments, drawn and written by `unrolled reproduce --gallery`. The numbers behind each of them,
beside the published ones, are in [the page of all results]({numbers}).
"""


def draw_gallery(
    experiments: Iterable[Experiment],
    archive: Archive,
    scales: Sequence[Scale],
    page: Path,
    folder: Path,
    numbers: Path,
) -> str:
    """Draw the figures of all experiments, and write the page that shows them.

    Args:
        experiments: which, in the order of the page.
        archive: where their results lie.
        scales: which scales to look for; each experiment is shown at the last at which it was run.
        page: where the page is going to lie: its links begin there.
        folder: where the figures are drawn.
        numbers: the page of all results, to link to.

    Returns:
        Markdown. Experiments without a figure, or not run, are left out.
    """
    parts = [_HEAD.format(numbers=_link(numbers, page))]
    for experiment in experiments:
        found = [(scale, results) for scale in scales if (results := collect(experiment, scale, archive))]
        if not found:
            continue
        scale, ran = found[-1]
        report = experiment.report(ran, scale)
        if not report.figures:
            continue
        parts.append(f"## {experiment.title}")
        for name, draw in report.figures.items():
            png, _ = save(draw, folder, name)
            parts.append(f"![{experiment.title}: {name}]({_link(png, page)})")
        if findings := current_findings(archive.folder, experiment, scale, ran):
            parts.append(findings.splitlines()[0].removeprefix("- "))
        command = f"unrolled reproduce {experiment.name} --scale {scale} --figures {folder.as_posix()}"
        parts.append(f"`{command}`: {SCALES[scale]}.")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _link(target: Path, page: Path) -> str:
    """Tell how to get from a page to a file."""
    return Path(os.path.relpath(target, page.parent)).as_posix()
