"""RESULTS.md: every experiment that has been run, ours beside theirs, written from the archive alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Result, Scale
from unrolled.lab.papers.framework.findings import current_findings
from unrolled.lab.papers.framework.result_store import Archive
from unrolled.lab.papers.framework.runner import collect

__all__ = ["summarise"]

_HEAD = """# Results

Written by `unrolled reproduce --write`; no figure here is typed by hand. Ours first, the published value in brackets;
± is the standard deviation over seeds and a figure without one is of a single seed, unless its table says otherwise.
What is measured on test data was measured once; whatever was chosen was chosen on dev. Scales: {scales}.
"""


def summarise(experiments: Iterable[Experiment], archive: Archive, scales: Sequence[Scale]) -> str:
    """Write the page.

    Args:
        experiments: which, in the order of the page.
        archive: where their results lie.
        scales: which scales to report, where they were run.

    Returns:
        Markdown; experiments that were not run are listed as such.
    """
    told = "; ".join(f"*{scale}* ({SCALES[scale]})" for scale in scales)
    parts, missing, paper = [_HEAD.format(scales=told)], [], ""
    for experiment in experiments:
        sections = [
            "\n\n".join(_section(experiment, scale, results, archive))
            for scale in scales
            if (results := collect(experiment, scale, archive))
        ]
        if not sections:
            missing.append(experiment)
            continue
        if experiment.paper != paper:
            paper = experiment.paper
            parts.append(f"## {paper}")
        parts += [f"### {experiment.title}", f"`{experiment.name}`: {experiment.source}", *sections]
    if missing:
        parts.append("## Not run yet")
        parts.append("\n".join(f"- `{each.name}`: {each.title}" for each in missing))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _section(experiment: Experiment, scale: Scale, results: Sequence[Result], archive: Archive) -> Iterator[str]:
    report = experiment.report(results, scale)
    for table in report.tables:
        yield table.markdown()
    if findings := current_findings(archive.folder, experiment, scale, results):
        yield findings
    yield _provenance(experiment, scale, results)


def _provenance(experiment: Experiment, scale: Scale, results: Sequence[Result]) -> str:
    """Say who ran it, where, when, for how long; and what is missing."""
    total = len(experiment.trials(scale))
    machines = "; ".join(dict.fromkeys(result.machine for result in results))
    days = sorted({result.when for result in results})
    minutes = sum(result.seconds for result in results) / 60
    count = f"{len(results)} trials" if len(results) == total else f"{len(results)} of {total} trials"
    torch = ", ".join(dict.fromkeys(f"torch {result.versions.get('torch', '?')}" for result in results))
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    commands = ", ".join(f"`{command}`" for command in dict.fromkeys(result.command for result in results))
    return f"*Scale {scale}, {count}, {minutes:.1f} minutes, {when}; {machines}; {torch}; {commands}.*"
