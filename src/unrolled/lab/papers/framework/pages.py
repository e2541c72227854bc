"""The pages about results: one for each item and a summary of all, written from the stored results alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unrolled.atomic_write import atomic_write
from unrolled.errors import FileError
from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Report, Result, Scale
from unrolled.lab.papers.framework.figure_style import save
from unrolled.lab.papers.framework.findings import current_findings
from unrolled.lab.papers.framework.result_store import ResultStore
from unrolled.lab.papers.framework.runner import collect
from unrolled.lab.papers.framework.strength import strength_section
from unrolled.lab.papers.framework.table import MISSING, markdown_table
from unrolled.lab.papers.framework.verdict import (
    VERDICT_RULES,
    Comparison,
    agreement,
    compare,
    headline,
    is_complete,
    tested,
    verdict,
)

__all__ = ["gallery_page", "single_page", "write_pages"]

_REPORTED: tuple[Scale, ...] = ("cpu", "day", "paper")
_ORIGIN = """\
Tables and verdicts are written by `unrolled reproduce --write docs/results`. The sentences beside them are written by
hand, and are shown only beside the results that they were written for. """
_READING = """\
In an item's tables our number stands first, the published one in brackets. ± is the sample standard deviation (n - 1)
over seeds, or over what the table names; a number without it is of one seed, unless its table says otherwise. Trainings
that diverged are left out of means. Unless an item says otherwise, epochs and settings were chosen on dev, and
each training was measured once on test data."""
_UNEXPLAINED = "unexplained.md"
"""In the folder of results: a section of the summary, written by hand."""
_OUTCOMES = {True: "agrees", False: "differs", None: "not tested, no training has learned"}
_COLUMNS = ("item", "scale", "trials", "seeds, at most", "number", "published", "ours", "agree", "verdict")


@dataclass(frozen=True)
class _Run:
    """What an experiment gave at one scale."""

    experiment: Experiment
    scale: Scale
    results: Sequence[Result]
    report: Report
    comparisons: Sequence[Comparison]

    @property
    def trials(self) -> str:
        total = len(self.experiment.at(self.scale))
        return f"{len(self.results)}" if len(self.results) == total else f"{len(self.results)} of {total}"

    @property
    def verdict(self) -> str:
        return verdict(self.comparisons, complete=is_complete(self.experiment, self.scale, self.results))

    @property
    def agree(self) -> str:
        found = tested(self.comparisons)
        return f"{sum(found)} of {len(found)}" if found else MISSING

    @property
    def seeds(self) -> str:
        return str(len({result.trial.seed for result in self.results} - {None}) or MISSING)


def write_pages(experiments: Iterable[Experiment], store: ResultStore, folder: Path, figures: Path) -> Path:
    """Write a page for each item that has been run, and the summary; return the summary's path.

    Args:
        experiments: The items, in the order of the summary.
        store: Holds their results.
        folder: Folder of the pages.
        figures: The folder in which the figures are drawn.
    """
    experiments = list(experiments)
    runs = _runs(experiments, store)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder}: {error.strerror or error}") from None
    for experiment in experiments:
        if mine := [run for run in runs if run.experiment is experiment]:
            links = [{name: _link(path, folder) for name, path in _draw(run, figures).items()} for run in mine]
            _write(folder / _file(experiment), ["# " + experiment.title, *_item(mine, store, links)])
    summary = folder / "README.md"
    _write(summary, ["# Results", *_summary(experiments, runs, store)])
    return summary


def single_page(experiments: Iterable[Experiment], store: ResultStore) -> str:
    """Return one page with all items and no figures."""
    experiments = list(experiments)
    runs, parts = _runs(experiments, store), ["# Results", _READING]
    for experiment in experiments:
        if mine := [run for run in runs if run.experiment is experiment]:
            parts += [f"## {experiment.title}", *_item(mine, store, [{}] * len(mine))]
    return _join([*parts, *_not_run(experiments, runs)])


def gallery_page(experiments: Iterable[Experiment], store: ResultStore, page: Path, figures: Path) -> str:
    """Draw the figures of each item at its largest scale, and return a page that shows them.

    Args:
        experiments: The items, in the order of the page.
        store: Holds their results.
        page: Path of the page, from which its links start.
        figures: The folder in which the figures are drawn.
    """
    parts = ["# Gallery"]
    last = {run.experiment.name: run for run in _runs(experiments, store)}
    for run in last.values():
        if run.report.figures:
            parts.append(f"## {run.experiment.title}")
            parts += [_image(run, name, _link(path, page.parent)) for name, path in _draw(run, figures).items()]
            parts.append(f"`unrolled reproduce {run.experiment.name} --scale {run.scale} --figures {figures}`")
    return _join(parts)


def _runs(experiments: Iterable[Experiment], store: ResultStore) -> list[_Run]:
    """Report every experiment at every scale above smoke at which it has results."""
    runs = []
    for experiment in experiments:
        for scale in _REPORTED:
            if results := collect(experiment, scale, store):
                report = experiment.report(results, scale)
                runs.append(_Run(experiment, scale, results, report, compare(experiment, results, report)))
    return runs


def _summary(experiments: Sequence[Experiment], runs: Sequence[_Run], store: ResultStore) -> Iterator[str]:
    yield _ORIGIN + _READING
    yield "Scales: " + "; ".join(f"*{scale}*: {SCALES[scale]}" for scale in _REPORTED) + "."
    ran = {run.experiment.name for run in runs}
    none = [[f"{each.name}: {each.title}", *[MISSING] * 7, "not run"] for each in experiments if each.name not in ran]
    yield markdown_table(_COLUMNS, [*(_summary_row(run) for run in runs), *none])
    yield from strength_section(experiments, store)
    if (unexplained := store.folder / _UNEXPLAINED).is_file():
        yield unexplained.read_text(encoding="utf-8").strip()
    yield "## How a verdict is found"
    yield VERDICT_RULES
    yield from _not_run(experiments, runs)


def _summary_row(run: _Run) -> list[str]:
    name, found = run.experiment.name, headline(run.experiment, run.results, run.report)
    what, theirs, ours = (MISSING,) * 3 if found is None else (found[0], found[1].shown_theirs, found[1].shown_ours)
    link = f"[{name}]({_file(run.experiment)}): {run.experiment.title}"
    return [link, run.scale, run.trials, run.seeds, what, theirs, ours, run.agree, run.verdict]


def _not_run(experiments: Sequence[Experiment], runs: Sequence[_Run]) -> Iterator[str]:
    """List the scales of each item at which nothing, or not everything, has been run."""
    rows = []
    for experiment in experiments:
        mine = {run.scale: run for run in runs if run.experiment is experiment}
        missing = [scale for scale in _REPORTED if scale in experiment.scales and scale not in mine]
        partial = [f"{run.scale} ({run.trials} trials)" for run in mine.values() if "of" in run.trials]
        if missing or partial:
            rows.append([f"`{experiment.name}`", ", ".join(missing) or MISSING, ", ".join(partial) or MISSING])
    yield "## What has not been run"
    yield markdown_table(("item", "scales without a trial", "scales with some trials missing"), rows)


def _item(runs: Sequence[_Run], store: ResultStore, links: Sequence[Mapping[str, str]]) -> Iterator[str]:
    experiment = runs[0].experiment
    yield f"`{experiment.name}`: {experiment.source}."
    for run, figures in zip(runs, links, strict=True):
        yield f"## Scale {run.scale}"
        compared = (
            f" ({agreement(run.comparisons)}; [rules](README.md#how-a-verdict-is-found))" if run.comparisons else ""
        )
        yield f"Verdict: **{run.verdict}**{compared}."
        if experiment.claims(run.results):
            yield "\n".join(f"- {_OUTCOMES[each.agrees]}: {each.what}" for each in run.comparisons)
        if findings := current_findings(store.folder, experiment, run.scale, run.results):
            yield findings
        yield from (table.markdown() for table in run.report.tables)
        yield from (_image(run, name, link) for name, link in figures.items())
        yield _provenance(run)


def _provenance(run: _Run) -> str:
    """State commands, trials, seeds, hours, days, machines and versions."""
    results = run.results
    days = sorted({result.when for result in results})
    commits, recorded = (
        sorted({result.versions[name] for result in results if name in result.versions})
        for name in ("commit", "recorded")
    )
    rows = {
        "command": ", ".join(f"`{each}`" for each in dict.fromkeys(result.command for result in results)),
        "trials": f"{run.trials}, {run.seeds} seed(s)",
        "time": f"{sum(result.seconds for result in results) / 3600:.2f} hours",
        "when": days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}",
        "machine": "; ".join(dict.fromkeys(result.machine for result in results)),
        "versions": ", ".join(dict.fromkeys(f"torch {result.versions.get('torch', '?')}" for result in results)),
        **({"commit": ", ".join(commits)} if commits else {}),
        **({"recorded by commit": ", ".join(recorded)} if recorded else {}),
    }
    return markdown_table(("", "how it was run"), [list(row) for row in rows.items()]).replace("---:", "---")


def _draw(run: _Run, folder: Path) -> dict[str, Path]:
    """Draw the figures of a run; beyond scale cpu a file's name ends in the scale."""
    ending = "" if run.scale == "cpu" else f"-{run.scale}"
    return {name: save(draw, folder, name + ending)[0] for name, draw in run.report.figures.items()}


def _image(run: _Run, name: str, link: str) -> str:
    """Show a figure with its caption."""
    caption = run.report.captions.get(name, "")
    return f"![{run.experiment.title}: {name}]({link})" + (f"\n\n*Figure*: {caption}" if caption else "")


def _file(experiment: Experiment) -> str:
    return experiment.name.replace("/", "-") + ".md"


def _link(target: Path, folder: Path) -> str:
    """Return the path from a page's folder to a file."""
    return Path(os.path.relpath(target, folder)).as_posix()


def _join(parts: Iterable[str]) -> str:
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _write(path: Path, parts: Iterable[str]) -> None:
    atomic_write(path, _join(parts).encode())
