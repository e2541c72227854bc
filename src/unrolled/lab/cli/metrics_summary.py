"""Print the metrics of a run, and a command to try next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from unrolled.lab.cli.open_run import has_recurrent_network

if TYPE_CHECKING:
    from unrolled.lab.training.run_folder import Run
    from unrolled.lab.training.task import Metric

__all__ = ["format_metric", "format_metrics", "print_run"]

_SAMPLES = {
    "classify": "explain {run} 'it is not a bad film'",
    "regress": "explain {run} 'it is not a bad film'",
    "relate": "explain {run} 'the <e1> smoke </e1> came from the <e2> fire </e2>'",
    "tag": "explain {run} 'she lives in Paris' --at 3",
    "rank": "explain {run} 'where is lincoln ? ||| lincoln lies in nebraska .'",
    "lm": "generate {run} --length 40",
    "chars": "generate {run} --length 400",
    "translate": "translate {run} 'ein mann liest .'",
}
"""A command to try with a run of each task."""
_OTHERWISE = "evaluate {run}"


def format_metric(metric: Metric, value: float) -> str:
    """Format a metric with its name and unit, such as ``accuracy 85.17%``."""
    shown = f"{value:.2%}" if metric.unit == "share" else f"{value:.4g} {metric.unit}".rstrip()
    return f"{metric.name} {shown}"


def format_metrics(metrics: Sequence[Metric], values: Mapping[str, Any], prefix: str = "") -> str:
    """Format the metrics of one split; ``prefix`` precedes their names in ``values``, as in ``test_``."""
    there = [(each, values[prefix + each.name]) for each in metrics if prefix + each.name in values]
    return ", ".join(format_metric(each, value) for each, value in there)


def print_run(run: Run) -> None:
    """Print the metrics of a run, its folder, and a command to try next."""
    metrics = run.metrics
    typer.echo(f"test: {format_metrics(run.task.metrics, metrics, 'test_')}")
    typer.echo(
        f"with the weights of epoch {metrics['best_epoch']}, after {metrics['seconds']:.0f} s; saved to {run.folder}"
    )
    sample = _SAMPLES.get(run.task.name, _OTHERWISE)
    if sample.startswith("explain") and not has_recurrent_network(run.model):
        sample = _OTHERWISE
    typer.echo(f"next:  unrolled {sample.format(run=shlex.quote(str(run.folder)))}")
