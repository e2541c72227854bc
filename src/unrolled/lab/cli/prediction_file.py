"""Predictions as a table of comma-separated values: line, text, label where it is known, and what was predicted."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from unrolled.atomic_write import atomic_write

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Prediction", "header", "predicted_rows", "write_predictions", "write_rows"]


@dataclass(frozen=True)
class Prediction:
    """What a model says of a text."""

    text: str
    predicted: str
    """The class, or the number; empty for a text without a word."""
    probabilities: tuple[float, ...] = ()
    """Of every class; empty for a number."""
    label: str | None = None
    """The right answer; None if it is not known."""
    origin: tuple[str, int] | None = None
    """The file of the text, and the line at which it begins; None for a text of no file."""
    unknown: bool = False
    """Whether the model knows no word of the text."""


def predicted_rows(outputs: NDArray[np.float64], classes: Sequence[str]) -> list[tuple[str, tuple[float, ...]]]:
    """Return what the outputs for each text say: a class with the probabilities of all, or the number without any."""
    from scipy.special import softmax

    if not classes:
        return [(f"{row[0]:.9g}", ()) for row in outputs.tolist()]  # all digits of a float32
    best = outputs.argmax(axis=1).tolist()
    return [(classes[place], tuple(row)) for place, row in zip(best, softmax(outputs, axis=1).tolist(), strict=True)]


def header(classes: Sequence[str], *, labelled: bool, files: bool) -> list[str]:
    """Return the names of the columns; ``files`` says whether the texts are of several files."""
    names = ["file", "line", "text", "label", "predicted"]
    left_out = {"file": not files, "label": not labelled}
    return [*(name for name in names if not left_out.get(name)), *(f"p({name})" for name in classes)]


def write_rows(file: TextIO, predictions: Sequence[Prediction], *, files: bool) -> None:
    """Write rows of the table; probabilities keep six digits."""
    writer = csv.writer(file, lineterminator="\n")
    for row in predictions:
        name, line = row.origin or ("", "")
        known = [] if row.label is None else [row.label]
        shares = (f"{value:.6g}" for value in row.probabilities)
        writer.writerow([*([name] if files else []), line, row.text, *known, row.predicted, *shares])


def write_predictions(path: Path, classes: Sequence[str], predictions: Sequence[Prediction], force: bool) -> None:
    """Write the whole table, or nothing; over a file only if ``force``."""
    file = io.StringIO()
    labelled = any(row.label is not None for row in predictions)
    files = len({row.origin[0] for row in predictions if row.origin is not None}) > 1
    csv.writer(file, lineterminator="\n").writerow(header(classes, labelled=labelled, files=files))
    write_rows(file, predictions, files=files)
    atomic_write(path, file.getvalue().encode(errors="backslashreplace"), new=not force)
