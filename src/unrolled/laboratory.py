"""The one way from the instrument to the laboratory: by name, on demand, and only with the extra ``lab``."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from unrolled.extras import require_extra
from unrolled.named_sources import check_run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import nn

    from unrolled.explanation.explanation import Explanation
    from unrolled.explanation.explanations import Explanations

__all__ = [
    "TrainedRun",
    "estimators",
    "files_of_run",
    "load",
    "open_run",
    "read_texts",
]


class TrainedRun(Protocol):
    """A trained model, as :func:`load` returns it.

    The object is the laboratory's ``unrolled.lab.training.run_folder.Run``, which has more attributes.
    """

    @property
    def model(self) -> nn.Module:
        """The network with the weights of the best epoch, on the CPU, in evaluation mode."""

    @property
    def task(self) -> Any:
        """The task it was trained for, with its vocabularies and labels."""

    @property
    def metrics(self) -> Mapping[str, float]:
        """The task's metrics on dev and test, such as ``dev_accuracy``."""

    @property
    def folder(self) -> Path:
        """The run folder."""

    @property
    def warning(self) -> str:
        """What to know before the run is used: that its training has not ended; else empty."""

    def predict(self, texts: Sequence[str]) -> NDArray[Any]:
        """Predict the label of each text, or its rating, shape (texts,)."""

    def predict_proba(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Predict the probability of each class, shape (texts, classes), in the order of ``task.classes``."""

    def score(self, texts: Sequence[str], labels: Sequence[Any]) -> float:
        """Return the accuracy; for a task of ratings R²."""

    def explain(self, text: str, target: str | int | None = None) -> Explanation:
        """Explain the output for a text; None for the predicted class."""

    def explain_batch(self, texts: Sequence[str], target: str | int | None = None) -> Explanations:
        """Explain the output for every text; None for the class that is predicted for it."""


def load(path: str | os.PathLike[str]) -> TrainedRun:
    """Load a run folder that ``unrolled train`` wrote.

    Needs the extra ``lab``.

    Args:
        path: The run folder. An unfinished run is loaded with the weights of its best epoch so far, and a
            warning names the command that goes on.

    Returns:
        The run. ``run.predict(texts)``, ``run.predict_proba(texts)``, ``run.score(texts, labels)``,
        ``run.explain(text)`` and ``run.explain_batch(texts)`` take texts as people type them; ``run.model`` is an
        ordinary module that :func:`unrolled.explain` accepts.

    Raises:
        UsageError: If the extra ``lab`` is not installed.
        FileError: If the folder does not exist or cannot be read.
        DataError: If it is not a run folder, or a file is missing, truncated or inconsistent with the others.

    Example:
        >>> import unrolled
        >>> run = unrolled.load("runs/sst2-gru")  # doctest: +SKIP
        >>> run.predict(["not a bad film", "a bore"])  # doctest: +SKIP
        array(['positive', 'negative'], dtype=object)
        >>> print(run.explain("not a bad film"))  # doctest: +SKIP
    """
    require_extra("lab", "unrolled.load")
    run: TrainedRun = importlib.import_module("unrolled.lab.training.run_folder").load_run(Path(path))
    if run.warning:
        warnings.warn(run.warning, stacklevel=2)
    return run


def files_of_run(path: Path) -> Iterator[Path]:
    """Yield the files that a run consists of, which no other command may write."""
    require_extra("lab", "a run folder")
    found: Iterator[Path] = importlib.import_module("unrolled.lab.training.run_names").files_of_run(path)
    return found


def open_run(path: Path, at: int | None) -> Callable[[str], Any]:
    """Load a run folder for ``unrolled explain``; return what prepares a sentence for it."""
    require_extra("lab", "a run folder")
    check_run(path)
    opener: Callable[[str], Any] = importlib.import_module("unrolled.lab.cli.runs").open_run(path, at)
    return opener


def read_texts(
    path: Path, text_column: str | None, header: bool, split: str | None, run: Path | None, say: Callable[[str], None]
) -> Iterator[tuple[int, str]]:
    """Read the texts of a file, each with its line: of a table's column, of JSON lines, or a text a line.

    ``split`` is that of ``hf:NAME``; ``run`` the run that reads the texts, if one does; ``say`` receives notes.
    """
    require_extra("lab", "explain --file")
    trained = None
    if run is not None:
        trained, _ = importlib.import_module("unrolled.lab.training.data_check").trained_columns(run)
    reading = importlib.import_module("unrolled.lab.data.reading").Reading(
        text_column=text_column, header=header, trained_text=trained
    )
    reader: Callable[..., Iterator[tuple[int, str]]] = importlib.import_module(
        "unrolled.lab.data.unlabelled"
    ).read_texts
    return reader(path, reading, split, say)


def estimators() -> tuple[Any, Any]:
    """Return the classes RecurrentClassifier and RecurrentRegressor for ``unrolled.sklearn``."""
    require_extra("lab", "unrolled.sklearn")
    found = importlib.import_module("unrolled.lab.estimators.recurrent")
    return found.RecurrentClassifier, found.RecurrentRegressor
