"""``unrolled reproduce``: run the papers' tables and figures, and lay ours beside theirs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from unrolled.lab.papers.framework.experiment import Experiment, Report, Scale, Trial
    from unrolled.lab.papers.framework.result_store import Archive

__all__ = ["reproduce"]


class _Lines:
    """Says which trial is under way."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def trial(self, trial: Trial, number: int, total: int, found: bool) -> None:
        """Write the trial's line."""
        done = "  (in the archive)" if found else ""
        self.console.print(f"{number:>3}/{total}  {trial.label}{done}", highlight=False, markup=False, soft_wrap=True)

    def say(self, line: str) -> None:
        """Write what a trial says of itself."""
        self.console.print(f"        {line}", highlight=False, markup=False, soft_wrap=True)


def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PAPER/ITEM]...", help="Which; a paper's name stands for all its items."),
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List these items, or all.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Run all items.")] = False,
    scale: Annotated[
        str, typer.Option(help="smoke (made-up data, seconds), cpu (two cores, minutes) or paper (a GPU).")
    ] = "cpu",
    results: Annotated[Path, typer.Option(help="Where results are kept; what lies there is not run again.")] = Path(
        "results"
    ),
    figures: Annotated[
        Path | None, typer.Option(help="Draw the figures into this folder, as PNG and SVG.", show_default=False)
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            help="Write the page of all results, RESULTS.md for one; alone, it runs nothing.", show_default=False
        ),
    ] = None,
    gallery: Annotated[
        Path | None,
        typer.Option(
            help="Write the page of all figures, which --figures says where to draw; alone, it runs nothing.",
            show_default=False,
        ),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder that holds the datasets; else the variable UNROLLED_DATA.")
    ] = None,
) -> None:
    """Run tables and figures of the papers, and print ours beside theirs.

    Every trial is kept as soon as it has been run: stop at any time and start again, and it goes on where it was.

        unrolled reproduce --list
        unrolled reproduce cs577-lecture-5/memorising --scale smoke
    """
    from rich.console import Console

    from unrolled.lab.papers import EXPERIMENTS
    from unrolled.lab.papers.framework.experiment import SCALES
    from unrolled.lab.papers.framework.result_store import Archive

    if scale not in SCALES:
        raise UnknownNameError("scale", scale, SCALES)
    chosen_scale: Scale = scale
    members = [member() for member in EXPERIMENTS.members.values()]
    archive = Archive(results)
    chosen = members if everything else _choose(members, items or [])
    if list_them:
        _list(chosen or members, chosen_scale, archive)
        return
    if not chosen and write is None and gallery is None:
        raise UsageError("no item came; expected PAPER/ITEM, --all or --list")
    if gallery is not None and figures is None:
        raise UsageError(f"no folder for the figures of {gallery}; expected --figures")
    command = shlex.join(["unrolled", "reproduce", *sys.argv[2:]])
    progress = Console(stderr=True)
    for experiment in chosen:
        _run(experiment, chosen_scale, archive, _Lines(progress), command, data_dir, figures)
    if write is not None:
        from unrolled.atomic_write import atomic_write
        from unrolled.lab.papers.framework.summary import summarise

        atomic_write(write, summarise(members, archive, ["cpu", "paper"]).encode())
        typer.echo(f"page: {write}")
    if gallery is not None and figures is not None:
        from unrolled.atomic_write import atomic_write
        from unrolled.lab.papers.framework.gallery import draw_gallery

        numbers = write or Path("RESULTS.md")
        page = draw_gallery(members, archive, ["cpu", "paper"], gallery, figures, numbers)
        atomic_write(gallery, page.encode())
        typer.echo(f"page: {gallery}")


def _choose(members: list[Experiment], wanted: list[str]) -> list[Experiment]:
    chosen: list[Experiment] = []
    for name in wanted:
        found = [each for each in members if name in (each.name, each.paper)]
        if not found:
            raise UnknownNameError("item", name, [name for each in members for name in (each.name, each.paper)])
        chosen += [each for each in found if each not in chosen]
    return chosen


def _list(members: list[Experiment], scale: Scale, archive: Archive) -> None:
    from unrolled.lab.papers.framework.runner import collect

    width = max((len(each.name) for each in members), default=0)
    for each in members:
        done, total = len(collect(each, scale, archive)), len(each.trials(scale))
        typer.echo(f"{each.name:<{width}}  {done:>3}/{total:<3}  {each.title}")
    typer.echo(f"\nbehind each name: how many of its trials at scale {scale} are in {archive.folder}")


def _run(
    experiment: Experiment,
    scale: Scale,
    archive: Archive,
    lines: _Lines,
    command: str,
    data: Path | None,
    figures: Path | None,
) -> None:
    from unrolled.lab.papers.framework.findings import current_findings
    from unrolled.lab.papers.framework.runner import run_experiment

    lines.console.print(f"{experiment.name}: {experiment.title}", style="bold", highlight=False)
    found = run_experiment(experiment, scale, archive, command=command, data=data, onlooker=lines)
    report = experiment.report(found, scale)
    _print(report)
    if findings := current_findings(archive.folder, experiment, scale, found):
        typer.echo(findings)
    if figures is not None:
        _draw(report, figures)


def _print(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for each in report.tables:
        table = Table(*each.columns)
        for row in each.cells():
            table.add_row(*row)
        console.print(each.title, style="bold", markup=False, highlight=False, soft_wrap=True)
        console.print(table, markup=False, highlight=False)


def _draw(report: Report, folder: Path) -> None:
    from unrolled.lab.papers.framework.figure_style import save

    for name, draw in report.figures.items():
        for path in save(draw, folder, name):
            typer.echo(f"figure: {path}")
