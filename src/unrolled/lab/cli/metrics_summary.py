"""Printing how good a model is, and what may be done with it next."""

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
"""What can be done with a run of each task; those of another task, or with nothing to open, are judged again."""
_OTHERWISE = "evaluate {run}"


def format_metric(measure: Metric, value: float) -> str:
    """Write a figure with its unit."""
    shown = f"{value:.2%}" if measure.unit == "share" else f"{value:.4g} {measure.unit}".rstrip()
    return f"{measure.name} {shown}"


def format_metrics(metrics: Sequence[Metric], values: Mapping[str, Any], prefix: str = "") -> str:
    """Write the figures of one split."""
    there = [(each, values[prefix + each.name]) for each in metrics if prefix + each.name in values]
    return ", ".join(format_metric(each, value) for each, value in there)


def print_run(run: Run) -> None:
    """Say how good a run is, where it lies, and what to do next."""
    metrics = run.metrics
    typer.echo(f"test: {format_metrics(run.task.metrics, metrics, 'test_')}")
    typer.echo(
        f"with the weights of epoch {metrics['best_epoch']}, after {metrics['seconds']:.0f} s; saved to {run.folder}"
    )
    sample = _SAMPLES.get(run.task.name, _OTHERWISE)
    if sample.startswith("explain") and not has_recurrent_network(run.model):
        sample = _OTHERWISE
    typer.echo(f"next:  unrolled {sample.format(run=shlex.quote(str(run.folder)))}")
