"""``unrolled evaluate RUN``: evaluate a trained model again, or on other data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unrolled.errors import UnknownNameError
from unrolled.lab.cli.metrics_summary import format_metrics
from unrolled.lab.cli.options import DataFolder

__all__ = ["evaluate"]

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
    from unrolled.lab.training.evaluation import details
    from unrolled.lab.training.evaluation import evaluate as compute_metrics
    from unrolled.lab.training.run_folder import load_run

    if split not in _SPLITS:
        raise UnknownNameError("split", split, _SPLITS)
    loaded = load_run(run)
    if data:
        files, title = [Path(name) for name in data], ", ".join(data)
        examples = read_split(loaded.task.kind, files, loaded.task.classes, format_name)
    else:
        corpus = loaded.data.reload_corpus(loaded.task.kind, data_dir, loaded.settings.seed)
        examples, title = getattr(corpus, split), f"{loaded.data.title}, {split}"
    encoded = loaded.task.encode(examples)
    cpu = torch.device("cpu")
    found = compute_metrics(loaded.task, loaded.model, encoded, cpu)
    typer.echo(f"{title} ({len(encoded):,}): {format_metrics(loaded.task.metrics, found)}")
    for metric in loaded.task.metrics:
        typer.echo(f"  {metric.name}: {metric.description}")
    for line in details(loaded.task, loaded.model, encoded, cpu):
        typer.echo(line)
