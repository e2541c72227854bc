"""The data that ``unrolled evaluate`` reads: a split of the run's own data, the user's files, or a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from unrolled.errors import UsageError
from unrolled.lab.cli.printed_notes import print_notes
from unrolled.named_sources import is_hub_dataset
from unrolled.report.formatting import harmless

if TYPE_CHECKING:
    from unrolled.lab.data.reading import Reading
    from unrolled.lab.training.run_folder import Run

__all__ = ["GivenData", "read_examples", "warn_of_examples"]


class GivenData(NamedTuple):
    """What the user says of the data to evaluate on."""

    names: Sequence[str]
    """Files, or ``hf:NAME``; none for the run's own data."""
    split: str
    """Of the run's own data, or of ``hf:NAME``."""
    format_name: str | None
    reading: Reading
    folder: Path | None
    """The folder of the datasets."""


def read_examples(run: Run, given: GivenData) -> tuple[Any, str]:
    """Read what to evaluate on, and its title."""
    own = _own_reading(run)
    reading = _with(own, given.reading)
    if given.names and is_hub_dataset(given.names[0]):
        return _read_hub_dataset(run, given, reading)
    if given.names:
        return _read_files(run, given, reading)
    if reading != own or given.format_name is not None:
        raise UsageError(
            "--format and the options about columns and rows are for --data FILE; the run's own data are read as in "
            "its training"
        )
    return _read_own_data(run, given)


def warn_of_examples(run: Run, names: Sequence[str], examples: Iterable[Any]) -> None:
    """Warn of examples of the user's files that the run was trained on."""
    from unrolled.lab.training.data_check import file_warnings

    _warn(file_warnings(run.folder, examples, [Path(name) for name in names], run.data))


def _own_reading(run: Run) -> Reading:
    """Return how the run's own files were read, with the columns that it was trained on."""
    from unrolled.lab.training.data_check import trained_columns

    text, label = trained_columns(run.folder)
    return replace(run.data.reading, trained_text=text, trained_label=label)


def _with(own: Reading, said: Reading) -> Reading:
    """Read as the run's own files were read, but for what the user says."""
    return replace(
        own,
        text_column=said.text_column or own.text_column,
        label_column=said.label_column or own.label_column,
        header=own.header and said.header,
        skip_invalid=own.skip_invalid or said.skip_invalid,
    )


def _read_hub_dataset(run: Run, given: GivenData, reading: Reading) -> tuple[Any, str]:
    from unrolled.lab.data.hub import read_hub_split

    name, *others = [*given.names, *([] if given.format_name is None else ["--format"])]
    if others:
        raise UsageError(f"{name} has columns and splits of its own; leave out {others[0]}")
    examples, notes = read_hub_split(name, run.task.kind, run.task.known_labels, given.split, reading)
    print_notes(notes)
    return examples, name


def _read_files(run: Run, given: GivenData, reading: Reading) -> tuple[Any, str]:
    from unrolled.lab.data.formats import read_split

    files = [Path(name) for name in given.names]
    examples, notes = read_split(run.task.kind, files, run.task.known_labels, given.format_name, reading)
    print_notes(notes)
    return examples, ", ".join(given.names)


def _read_own_data(run: Run, given: GivenData) -> tuple[Any, str]:
    """Read a split of the run's own data, and warn of what has changed since its training."""
    from unrolled.lab.training.data_check import data_warnings, read_with_checksums

    read = partial(run.data.reload_corpus, run.task.kind, given.folder, run.settings.seed)
    corpus, checksums = read_with_checksums(read, run.data, given.folder)
    _warn(data_warnings(run.folder, corpus, checksums, given.split))
    print_notes(corpus.notes)
    return getattr(corpus, given.split), f"{run.data.title}, {given.split}"


def _warn(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(f"warning: {harmless(line)}", err=True)
