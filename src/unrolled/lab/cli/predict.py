"""``unrolled predict``: what a trained model says of texts without labels."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from unrolled.cli.output_file import check_new, check_not_read, is_standard_output
from unrolled.cli.texts_of_users import write_text
from unrolled.errors import DataError, UsageError
from unrolled.lab.cli.arguments import run_argument
from unrolled.lab.cli.prediction_file import (
    Prediction,
    header,
    predicted_rows,
    write_predictions,
    write_rows,
)
from unrolled.lab.cli.printed_notes import print_notes
from unrolled.lab.cli.runs import load_with_warning
from unrolled.lab.data.reading import line_list
from unrolled.lab.training.run_names import files_of_run
from unrolled.named_sources import check_run, check_source, given_twice
from unrolled.report.formatting import counted, harmless, visible

if TYPE_CHECKING:
    from unrolled.lab.training.run_folder import Run
    from unrolled.lab.training.text_tasks import TextTask

__all__ = ["predict"]

T = TypeVar("T")
_AT_ONCE = 4096  # texts in memory


class _Text(NamedTuple):
    origin: tuple[str, int]
    """Its file and line."""
    text: str


def predict(
    run: Annotated[Path, run_argument("The run folder of classify, relate or regress.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="Tables, JSON lines, a text a line, or hf:NAME; else standard input, a text a line, a table with a "
            "header, or JSON lines.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The CSV file to write.", show_default="standard output")] = None,
    text_column: Annotated[
        str | None, typer.Option(help="Column of the texts: its name, or its number from 1.", show_default="found")
    ] = None,
    no_header: Annotated[bool, typer.Option("--no-header", help="Read the first line as a text.")] = False,
    split: Annotated[str | None, typer.Option(help="Split of hf:NAME or hf:FOLDER.", show_default="test")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Predict the class or the rating of every text of a file, as CSV with the probabilities of all classes.

    The first column is the number of the line at which the text begins; a header counts as a line. If there are several
    files, the column before it names the file.

        unrolled predict runs/reviews new.csv --out predictions.csv
    """
    from unrolled.lab.data.reading import Reading
    from unrolled.lab.data.unlabelled import read_texts

    def say(line: str) -> None:
        print_notes([line])

    check_run(run)
    out = None if is_standard_output(out) else out
    check_new(out, force, ".csv")
    names = files or ["-"]
    check_not_read(out, [*names, *files_of_run(run)])
    for name in names:
        if name != "-":
            check_source(name)
    if names.count("-") > 1:
        raise UsageError("standard input is named twice, but can be read only once; name it once")
    paths = list(map(Path, names))

    from unrolled.lab.training.data_check import trained_columns

    loaded = load_with_warning(run)
    loaded.text_task()
    for path, count in given_twice(paths).items():
        say(f"{path} is given {count} times; each of its texts is predicted {count} times")
    trained, _ = trained_columns(loaded.folder)
    reading = Reading(text_column=text_column, header=not no_header, trained_text=trained)
    texts = (
        _Text(("standard input" if str(path) == "-" else str(path), line), text)
        for path in paths
        for line, text in read_texts(path, reading, split, say)
    )
    found = _predictions(loaded, texts)
    nothing = f"no text to predict in {', '.join('standard input' if name == '-' else name for name in names)}"
    if out is None:
        count, noted = _print(loaded.task.classes, found, len(set(paths)) > 1)
        for line in _notes(noted) if count else (nothing,):
            typer.echo(harmless(line), err=True)
        return
    rows = list(found)
    write_predictions(out, loaded.task.classes, rows, force)
    if not rows:
        typer.echo(harmless(nothing), err=True)
    said = harmless("".join(f"; {line}" for line in _notes(rows)))
    predicted = sum(bool(row.predicted) for row in rows)
    typer.echo(f"{counted(predicted, 'prediction')}: {visible(str(out))}{said}")


def _notes(rows: Iterable[Prediction]) -> Iterator[str]:
    """Say which texts have no word, and so no prediction, and which no word that the model knows, by file and line."""
    empty, strange = [], []
    for row in rows:
        if row.origin and not row.predicted:
            empty.append(row.origin)
        elif row.origin and row.unknown:
            strange.append(row.origin)
    if empty:
        yield f"{counted(len(empty), 'text')} without a word {_have(empty)} no prediction ({_places(empty)})"
    if strange:
        known = f"{_have(strange)} no word that the model knows, so the prediction says little"
        yield f"{counted(len(strange), 'text')} {known} ({_places(strange)})"


def _have(origins: Sequence[tuple[str, int]]) -> str:
    return "has" if len(origins) == 1 else "have"


def _places(origins: Sequence[tuple[str, int]]) -> str:
    lines: dict[str, list[int]] = {}
    for file, line in origins:
        lines.setdefault(file, []).append(line)
    return "; ".join(f"{file}: {line_list(each)}" for file, each in lines.items())


def _predictions(run: Run, texts: Iterable[_Text]) -> Iterator[Prediction]:
    for part in _parts(texts):
        yield from _predict_some(run, part)


def _parts(items: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(items)
    return iter(lambda: list(islice(remaining, _AT_ONCE)), [])


def _predict_some(run: Run, texts: Sequence[_Text]) -> list[Prediction]:
    """Predict some texts; one without a word has an empty prediction."""
    task = run.text_task()
    words = {place: tokens for place, each in enumerate(texts) if (tokens := _tokenise(task, each))}
    found = [Prediction(text, "", origin=origin) for origin, text in texts]
    if words:
        rows = predicted_rows(run.outputs_of(list(words.values())), run.task.classes)
        for place, (predicted, probabilities) in zip(words, rows, strict=True):
            unknown = len(task.vocabulary.unknown(words[place])) == len({*words[place]})
            found[place] = replace(found[place], predicted=predicted, probabilities=probabilities, unknown=unknown)
    return found


def _tokenise(task: TextTask[Any], text: _Text) -> tuple[str, ...]:
    """Split a text; DataError with its file and line if the task cannot read it."""
    try:
        return task.tokenise(text.text) if text.text.strip() else ()
    except DataError as fault:
        file, line = text.origin
        raise DataError(f"{file}:{line}: {fault}") from None


def _print(classes: Sequence[str], found: Iterable[Prediction], files: bool) -> tuple[int, list[Prediction]]:
    """Print the table; return the number of its rows, and those to note."""
    parts = _parts(found)
    first = next(parts, [])  # before the header: of a file that is refused nothing is printed
    shown = io.StringIO()
    csv.writer(shown, lineterminator="\n").writerow(header(classes, labelled=False, files=files))
    count, noted = 0, list[Prediction]()
    for part in chain([first], parts):
        write_rows(shown, part, files=files)
        write_text(shown.getvalue())
        shown = io.StringIO()
        count += len(part)
        noted += (row for row in part if row.unknown or not row.predicted)
    return count, noted
