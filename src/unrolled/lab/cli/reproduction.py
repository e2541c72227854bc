"""The trials and figures of ``unrolled reproduce``, shown in the terminal as they are made."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from unrolled.lab.cli.printed_table import print_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale, Trial
    from unrolled.lab.papers.framework.result_store import ResultStore

__all__ = ["Reproduction", "TrialLines"]

_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
"""A link of Markdown; a terminal shows its text."""


class TrialLines:
    """Prints a line for each trial."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def trial(self, trial: Trial, number: int, total: int, found: bool) -> None:
        """Print the trial's line."""
        done = "  (result found)" if found else ""
        self._print(f"{number:>3}/{total}  {trial.label}{done}")

    def say(self, line: str) -> None:
        """Print a line of the trial's own."""
        self._print(f"        {line}")

    def _print(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


@dataclass(frozen=True)
class Reproduction:
    """One call of the command."""

    scale: Scale
    store: ResultStore
    """Holds the results so far, and gets the new ones."""
    command: str
    """The command line that new results record."""
    data: Path | None
    """The folder of the datasets; None for the one that the environment names."""
    lines: TrialLines

    def run(self, experiment: Experiment, figures: Path | None, svg: bool) -> None:
        """Run the trials of an item that have no result, and print its tables; draw its figures into a folder."""
        if not experiment.at(self.scale):
            self.lines.console.print(f"{experiment.name}: no trials at scale {self.scale}", highlight=False)
            return
        report = self._run_trials(experiment)
        if figures is not None:
            _draw(report, figures, svg)

    def run_queue(self, experiments: list[Experiment], hours: float) -> None:
        """Run trials until the time is up, and print what is left."""
        from unrolled.lab.papers.framework.budget_queue import list_jobs, remaining, run_queue

        scale, store = self.scale, self.store
        run_queue(experiments, scale, store, hours=hours, command=self.command, progress=self.lines, data=self.data)
        print_table(remaining(list_jobs(experiments, scale, store)))

    def _run_trials(self, experiment: Experiment) -> Report:
        """Run the trials that have no result, and print what all results show."""
        from rich.console import Console

        from unrolled.lab.papers.framework.findings import current_findings
        from unrolled.lab.papers.framework.runner import run_experiment

        scale, store, lines = self.scale, self.store, self.lines
        lines.console.print(f"{experiment.name}: {experiment.title}", style="bold", highlight=False)
        found = run_experiment(experiment, scale, store, command=self.command, data=self.data, progress=lines)
        report = experiment.report(found, scale)
        for table in report.tables:
            print_table(table)
        if any(number.theirs is not None for table in report.tables for _, _, number in table.numbers()):
            what = "published numbers" if experiment.published else "an earlier measurement of ours"
            typer.echo(f"in brackets: {what}")
        if scale == "smoke":
            typer.echo(
                "scale smoke: made-up data and tiny models; these numbers show that the code runs, and nothing else"
            )
        else:
            _print_verdict(experiment, scale, found, report)
        if findings := current_findings(store.folder, experiment, scale, found):
            Console().print(_LINK.sub(r"\1", findings), markup=False, highlight=False)
        return report


def _draw(report: Report, folder: Path, svg: bool) -> None:
    from unrolled.lab.papers.framework.figure_style import save

    for name, draw in report.figures.items():
        for path in save(draw, folder, name, svg=svg):
            typer.echo(f"figure: {path}")


def _print_verdict(experiment: Experiment, scale: Scale, results: Sequence[Result], report: Report) -> None:
    from unrolled.lab.papers.framework.verdict import agreement, compare, is_complete, verdict

    if comparisons := compare(experiment, results, report):
        complete = is_complete(experiment, scale, results)
        typer.echo(f"verdict: {verdict(comparisons, complete=complete)}; {agreement(comparisons)}")
