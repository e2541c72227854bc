"""``unrolled evaluate RUN``: the metrics of a trained model, on its own data or on other data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from unrolled.cli.left_output import outlast_reader
from unrolled.cli.output_file import check_new, check_not_read
from unrolled.errors import UnknownNameError, UsageError
from unrolled.lab.cli.arguments import RunDataFolder, run_argument
from unrolled.lab.cli.error_page import write_error_page
from unrolled.lab.cli.evaluated_data import GivenData, read_examples, warn_of_examples
from unrolled.lab.cli.labelled_predictions import is_text_classification, predict_classes, predict_ratings
from unrolled.lab.cli.multi_value_command import MultiValueCommand
from unrolled.lab.cli.options import offer
from unrolled.lab.cli.prediction_file import write_predictions
from unrolled.lab.cli.printed_classes import print_classes
from unrolled.lab.cli.printed_metrics import format_metrics
from unrolled.lab.cli.printed_notes import print_notes
from unrolled.lab.cli.runs import load_with_warning
from unrolled.lab.training.run_names import files_of_run
from unrolled.named_sources import check_run, check_source, is_hub_dataset
from unrolled.report.formatting import harmless, visible

if TYPE_CHECKING:
    from unrolled.lab.training.run_folder import Run

__all__ = ["app", "evaluate"]


_SPLITS = ("test", "dev", "train")
_SHOWN, _ON_THE_PAGE = 5, 50
_CLASSES = 20
"""With more classes, a table of them is written only on request."""


class _Wanted(NamedTuple):
    """What to show and to write beside the metrics, as the options say."""

    errors: int | None
    predictions: Path | None
    html: Path | None
    page_errors: int | None
    force: bool

    @property
    def files(self) -> tuple[Path, ...]:
        """The files to write."""
        return tuple(each for each in (self.predictions, self.html) if each is not None)


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
    from unrolled.lab.data.reading import Reading

    wanted = _Wanted(errors, predictions, html, page_errors, force)
    names = data or ()
    _check_options(run, names, split, wanted)
    loaded = load_with_warning(run)
    if wanted.files:
        loaded.text_task()
        for path in wanted.files:
            check_not_read(path, () if names else loaded.data.files(data_dir).values())
    _check_task(loaded, wanted)
    said = Reading(text_column, label_column, not no_header, skip_invalid)
    examples, title = read_examples(loaded, GivenData(names, split or "test", format_name, said, data_dir))
    print_notes(loaded.task.doubts(examples))
    encoded = loaded.task.encode(examples)
    if names:
        warn_of_examples(loaded, names, examples)
    found, outputs = _evaluated(loaded, encoded)
    with outlast_reader(wanted.files):
        typer.echo(f"{harmless(title)} ({len(encoded):,}): {format_metrics(loaded.task.metrics, found)}")
        _print_details(loaded, encoded)
        _show_predictions(loaded, examples, outputs, wanted)


def _check_options(run: Path, data: Sequence[str], split: str | None, wanted: _Wanted) -> None:
    """Refuse what can be refused without reading the run."""
    if split is not None and split not in _SPLITS:
        raise UnknownNameError("split", split, _SPLITS)
    check_run(run)
    for name in data:
        check_source(name)
    if split is not None and data and not is_hub_dataset(data[0]):
        raise UsageError(f"--split is {split}, but {data[0]} is a file without splits; leave it out")
    if len({os.path.realpath(path) for path in wanted.files}) < len(wanted.files):
        raise UsageError(f"--predictions and --html both name {wanted.predictions}; name two files")
    if wanted.page_errors is not None and wanted.html is None:
        raise UsageError("--page-errors is for --html; give --html as well, or leave it out")
    check_new(wanted.predictions, wanted.force, ".csv")
    check_new(wanted.html, wanted.force, ".html", ".htm")
    for path in wanted.files:
        check_not_read(path, [*data, *files_of_run(run)])


def _check_task(loaded: Run, wanted: _Wanted) -> None:
    """Refuse what the run's task does not have."""
    task = loaded.task
    if wanted.html is not None and not task.classes:
        raise UsageError(f"--html shows errors of classes, and the task {task.name} predicts numbers; leave it out")
    if wanted.errors is not None and not is_text_classification(loaded):
        raise UsageError(f"--errors shows errors of classes, and the task {task.name} has none; leave it out")


app = typer.Typer(add_completion=False)
app.command("evaluate", cls=MultiValueCommand)(evaluate)


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


def _show_predictions(loaded: Run, examples: Any, outputs: Any, wanted: _Wanted) -> None:
    """Print how well each class of texts is predicted, if they have classes, and write the files that are wanted."""
    if is_text_classification(loaded):
        predicted = predict_classes(loaded, examples, outputs)
        print_classes(predicted, _SHOWN if wanted.errors is None else wanted.errors, _CLASSES)
        if wanted.html is not None:
            most = wanted.page_errors or _ON_THE_PAGE
            typer.echo(write_error_page(wanted.html, loaded, predicted, most, not wanted.force))
        rows = predicted.rows
    elif wanted.predictions is not None:
        rows = predict_ratings(loaded, examples, outputs)
    if wanted.predictions is not None:
        write_predictions(wanted.predictions, loaded.task.classes, rows, wanted.force)
        typer.echo(f"predictions: {visible(str(wanted.predictions))}")
