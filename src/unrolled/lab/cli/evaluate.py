"""``unrolled evaluate RUN``: the metrics of a trained model, on its own data or on other data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.cli.left_output import outlast_reader
from unrolled.cli.output_file import check_new, check_not_read
from unrolled.errors import UnknownNameError, UsageError
from unrolled.lab.cli.error_page import write_error_page
from unrolled.lab.cli.labelled_predictions import is_text_classification, predict_classes, predict_ratings
from unrolled.lab.cli.options import MultiValueCommand, RunDataFolder, offer, print_notes, run_argument
from unrolled.lab.cli.prediction_file import write_predictions
from unrolled.lab.cli.printed_classes import print_classes
from unrolled.lab.cli.printed_metrics import format_metrics
from unrolled.lab.cli.runs import load_with_warning
from unrolled.lab.training.run_names import files_of_run
from unrolled.named_sources import check_run, check_source, is_hub_dataset
from unrolled.report.formatting import harmless, visible

if TYPE_CHECKING:
    from unrolled.lab.data.reading import Reading
    from unrolled.lab.training.run_folder import Run

__all__ = ["app", "evaluate"]


_SPLITS = ("test", "dev", "train")
_SHOWN, _ON_THE_PAGE = 5, 50
_CLASSES = 20
"""With more classes, a table of them is written only on request."""


def _own(help_text: str, *names: str) -> typer.models.OptionInfo:
    return typer.Option(*names, help=help_text, rich_help_panel="Your own files", show_default=False)


def _written(help_text: str) -> typer.models.OptionInfo:
    return typer.Option(help=help_text, rich_help_panel="Files to write", show_default=False)


def evaluate(
    run: Annotated[Path, run_argument("The run folder.")],
    data: Annotated[list[str] | None, _own("Files, hf:NAME or hf:FOLDER; by default the run's own data.")] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Split of the run's own data or of hf:…: test, dev, train.",
            autocompletion=offer(_SPLITS),
            show_default="test",
        ),
    ] = None,
    format_name: Annotated[
        str | None, _own("Format of the files, if their suffix does not tell it.", "--format")
    ] = None,
    text_column: Annotated[str | None, _own("Column of the texts: its name, or its number from 1.")] = None,
    label_column: Annotated[str | None, _own("Column of the labels: its name, or its number from 1.")] = None,
    no_header: Annotated[bool, _own("Read the first line as an example.", "--no-header")] = False,
    skip_invalid: Annotated[
        bool, _own("Leave out and count rows that are no examples, or have a new label.", "--skip-invalid")
    ] = False,
    errors: Annotated[
        int | None, typer.Option(min=0, help="Number of the worst errors to show.", show_default=str(_SHOWN))
    ] = None,
    predictions: Annotated[
        Path | None, _written("A CSV file: line in the file that was read, text, label, predicted, probabilities.")
    ] = None,
    html: Annotated[Path | None, _written("A page that explains the worst errors.")] = None,
    page_errors: Annotated[
        int | None,
        typer.Option(min=1, help="Largest number of errors on the page.", show_default=str(_ON_THE_PAGE)),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    data_dir: RunDataFolder = None,
) -> None:
    """Evaluate a trained model by all metrics of its task.

    For classes also precision, recall and F1 of each, the confusion matrix and the worst errors.

        unrolled evaluate runs/reviews --html errors.html
        unrolled evaluate runs/reviews --data more.csv --predictions predictions.csv
    """
    _check_options(run, data, split, predictions, html, page_errors)
    check_new(predictions, force, ".csv")
    check_new(html, force, ".html", ".htm")
    for path in (predictions, html):
        check_not_read(path, [*(data or ()), *files_of_run(run)])
    from unrolled.lab.training.data_check import file_warnings

    loaded = load_with_warning(run)
    if predictions is not None or html is not None:
        loaded.text_task()
        for path in (predictions, html):
            check_not_read(path, () if data else loaded.data.files(data_dir).values())
    _check_task(loaded, html, errors)
    own = _own_reading(loaded)
    reading = replace(
        own,
        text_column=text_column or own.text_column,
        label_column=label_column or own.label_column,
        header=own.header and not no_header,
        skip_invalid=own.skip_invalid or skip_invalid,
    )
    if not data and (reading != own or format_name is not None):
        raise UsageError(
            "--format and the options about columns and rows are for --data FILE; the run's own data are read as in "
            "its training"
        )
    examples, title = _examples(loaded, data, split or "test", format_name, reading, data_dir)
    encoded = loaded.task.encode(examples)
    if data:
        _warn(file_warnings(loaded.folder, examples, [Path(name) for name in data], loaded.data))
    found, outputs = _evaluated(loaded, encoded)
    with outlast_reader((predictions, html)):
        typer.echo(f"{harmless(title)} ({len(encoded):,}): {format_metrics(loaded.task.metrics, found)}")
        _print_details(loaded, encoded)
        if is_text_classification(loaded):
            predicted = predict_classes(loaded, examples, outputs)
            print_classes(predicted, _SHOWN if errors is None else errors, _CLASSES)
            if html is not None:
                typer.echo(write_error_page(html, loaded, predicted, page_errors or _ON_THE_PAGE, not force))
            rows = predicted.rows
        elif predictions is not None:
            rows = predict_ratings(loaded, examples, outputs)
        if predictions is not None:
            write_predictions(predictions, loaded.task.classes, rows, force)
            typer.echo(f"predictions: {visible(str(predictions))}")


def _check_options(
    run: Path,
    data: Sequence[str] | None,
    split: str | None,
    predictions: Path | None,
    html: Path | None,
    page_errors: int | None,
) -> None:
    """Refuse what can be refused without reading the run."""
    if split is not None and split not in _SPLITS:
        raise UnknownNameError("split", split, _SPLITS)
    check_run(run)
    for name in data or ():
        check_source(name)
    if split is not None and data and not is_hub_dataset(data[0]):
        raise UsageError(f"--split is {split}, but {data[0]} is a file without splits; leave it out")
    if predictions is not None and html is not None and os.path.realpath(predictions) == os.path.realpath(html):
        raise UsageError(f"--predictions and --html both name {predictions}; name two files")
    if page_errors is not None and html is None:
        raise UsageError("--page-errors is for --html; give --html as well, or leave it out")


def _check_task(loaded: Run, html: Path | None, errors: int | None) -> None:
    """Refuse what the run's task does not have."""
    if html is not None and not loaded.task.classes:
        raise UsageError(
            f"--html shows errors of classes, and the task {loaded.task.name} predicts numbers; leave it out"
        )
    if errors is not None and not is_text_classification(loaded):
        raise UsageError(f"--errors shows errors of classes, and the task {loaded.task.name} has none; leave it out")


def _own_reading(loaded: Run) -> Reading:
    """Return how the run's own files were read, with the columns that it was trained on."""
    from unrolled.lab.training.data_check import trained_columns

    text, label = trained_columns(loaded.folder)
    return replace(loaded.data.reading, trained_text=text, trained_label=label)


app = typer.Typer(add_completion=False)
app.command("evaluate", cls=MultiValueCommand)(evaluate)


def _examples(
    loaded: Run,
    data: Sequence[str] | None,
    split: str,
    format_name: str | None,
    reading: Reading,
    data_dir: Path | None,
) -> tuple[Any, str]:
    """Read what to evaluate on, and its title."""
    from unrolled.lab.data.formats import read_split
    from unrolled.lab.data.hub import read_hub_split
    from unrolled.lab.training.data_check import data_warnings, read_with_checksums

    if data and is_hub_dataset(data[0]):
        if others := [*data[1:], *([] if format_name is None else ["--format"])]:
            raise UsageError(f"{data[0]} has columns and splits of its own; leave out {others[0]}")
        examples, notes = read_hub_split(data[0], loaded.task.kind, loaded.task.classes, split, reading)
        print_notes(notes)
        return examples, data[0]
    if data:
        files = [Path(name) for name in data]
        examples, notes = read_split(loaded.task.kind, files, loaded.task.classes, format_name, reading)
        print_notes(notes)
        return examples, ", ".join(data)
    read = partial(loaded.data.reload_corpus, loaded.task.kind, data_dir, loaded.settings.seed)
    corpus, checksums = read_with_checksums(read, loaded.data, data_dir)
    _warn(data_warnings(loaded.folder, corpus, checksums, split))
    print_notes(corpus.notes)
    return getattr(corpus, split), f"{loaded.data.title}, {split}"


def _evaluated(loaded: Run, encoded: Any) -> tuple[Mapping[str, float], Any]:
    """Compute the metrics; of a task of texts return the outputs as well, shape (texts, outputs), else None."""
    import torch

    from unrolled.lab.training.evaluation import evaluate as compute_metrics
    from unrolled.lab.training.evaluation import evaluate_texts
    from unrolled.lab.training.text_tasks import TextTask

    cpu = torch.device("cpu")
    if not isinstance(loaded.task, TextTask):
        return compute_metrics(loaded.task, loaded.model, encoded, cpu), None
    found, outputs = evaluate_texts(loaded.task, loaded.model, encoded, cpu)
    return found, outputs.double().numpy()


def _print_details(loaded: Run, encoded: Any) -> None:
    """Print what each metric is, and what the task says of the model beyond its metrics."""
    import torch

    from unrolled.lab.training.evaluation import details

    for metric in loaded.task.metrics:
        typer.echo(f"  {metric.name}: {metric.description}")
    for line in details(loaded.task, loaded.model, encoded, torch.device("cpu")):
        typer.echo(harmless(line))


def _warn(lines: Sequence[str]) -> None:
    for line in lines:
        typer.echo(f"warning: {harmless(line)}", err=True)
