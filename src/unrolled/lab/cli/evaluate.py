"""``unrolled evaluate RUN``: the metrics of a trained model, on its own data or on other data."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from unrolled.lab.cli.open_run import has_recurrent_network

if TYPE_CHECKING:
    from unrolled.lab.training.run_folder import Run
    from unrolled.lab.training.task import Metric
from pathlib import Path
from typing import Annotated

from unrolled.errors import UnknownNameError
from unrolled.lab.cli.options import DataFolder, print_notes

__all__ = ["evaluate", "format_metric", "format_metrics", "print_run"]


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


_SPLITS = ("test", "dev", "train")


def evaluate(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    data: Annotated[
        list[str] | None,
        typer.Option(help="Your own files to evaluate on; by default the run's own data.", show_default=False),
    ] = None,
    split: Annotated[str, typer.Option(help="Split of the run's own data: test, dev or train.")] = "test",
    format_name: Annotated[
        str | None, typer.Option("--format", help="Format of your files, if their suffix does not tell it.")
    ] = None,
    data_dir: DataFolder = None,
) -> None:
    """Evaluate a trained model by all metrics of its task.

    unrolled evaluate runs/sst2-gru --split dev
    unrolled evaluate runs/sst2-gru --data reviews.tsv
    """
    import torch

    from unrolled.lab.data.formats import read_split
    from unrolled.lab.training.data_check import data_warnings
    from unrolled.lab.training.evaluation import details
    from unrolled.lab.training.evaluation import evaluate as compute_metrics
    from unrolled.lab.training.run_folder import load_run

    if split not in _SPLITS:
        raise UnknownNameError("split", split, _SPLITS)
    loaded = load_run(run)
    if data:
        files, title = [Path(name) for name in data], ", ".join(data)
        examples, notes = read_split(loaded.task.kind, files, loaded.task.classes, format_name, loaded.data.reading)
    else:
        corpus = loaded.data.reload_corpus(loaded.task.kind, data_dir, loaded.settings.seed)
        for line in data_warnings(run, corpus, loaded.data.files(data_dir), split):
            typer.echo(f"warning: {line}", err=True)
        examples, title, notes = getattr(corpus, split), f"{loaded.data.title}, {split}", corpus.notes
    print_notes(notes)
    encoded = loaded.task.encode(examples)
    cpu = torch.device("cpu")
    found = compute_metrics(loaded.task, loaded.model, encoded, cpu)
    typer.echo(f"{title} ({len(encoded):,}): {format_metrics(loaded.task.metrics, found)}")
    for metric in loaded.task.metrics:
        typer.echo(f"  {metric.name}: {metric.description}")
    for line in details(loaded.task, loaded.model, encoded, cpu):
        typer.echo(line)
