"""Print the metrics of a model, and those of a run that has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from unrolled.lab.cli.next_command import next_command, typed_path
from unrolled.report.formatting import visible

if TYPE_CHECKING:
    from unrolled.lab.data.corpus import Corpus
    from unrolled.lab.training.run_folder import Run
    from unrolled.lab.training.task import Metric

__all__ = ["format_metrics", "print_run"]


def _format_metric(metric: Metric, value: float) -> str:
    """Format a metric with its name and unit, such as ``accuracy 85.17%``."""
    shown = f"{value:.2%}" if metric.unit == "share" else f"{value:.4g} {metric.unit}".rstrip()
    return f"{metric.name} {shown}"


def format_metrics(metrics: Sequence[Metric], values: Mapping[str, Any], prefix: str = "") -> str:
    """Format the metrics of one split; ``prefix`` precedes their names in ``values``, as in ``test_``."""
    there = [(each, values[prefix + each.name]) for each in metrics if prefix + each.name in values]
    return ", ".join(_format_metric(each, value) for each, value in there)


def print_run(run: Run, corpus: Corpus[Any]) -> None:
    """Print the metrics of a run, its folder, and a command to try next on its data."""
    metrics, folder = run.metrics, visible(typed_path(run.folder))
    typer.echo(f"test: {format_metrics(run.task.metrics, metrics, 'test_')}")
    typer.echo(
        f"with the weights of epoch {metrics['best_epoch']}, after {metrics['seconds']:.0f} s; saved to {folder}"
    )
    typer.echo(f"next:  {next_command(run, corpus)}")
