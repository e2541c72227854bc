"""The one way from the instrument to the laboratory: by name, on demand, and only with the extra ``lab``."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from unrolled.extras import require_extra

if TYPE_CHECKING:
    from torch import nn

__all__ = ["TrainedRun", "load", "open_run"]


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


def load(path: str | os.PathLike[str]) -> TrainedRun:
    """Load a run folder that ``unrolled train`` wrote.

    Needs the extra ``lab``.

    Args:
        path: The run folder. An unfinished run is loaded with the weights of its best epoch so far.

    Returns:
        The run; ``run.model`` is an ordinary module that :func:`unrolled.explain` accepts.

    Raises:
        UsageError: If the extra ``lab`` is not installed.
        FileError: If the folder does not exist or cannot be read.
        DataError: If it is not a run folder, or a file is missing, truncated or inconsistent with the others.

    Example:
        >>> import torch, unrolled
        >>> run = unrolled.load("runs/sst2-gru")  # doctest: +SKIP
        >>> tokens = run.task.vocabulary.encode("not a bad film".split())  # doctest: +SKIP
        >>> print(unrolled.explain(run.model, torch.tensor([tokens]), target=1))  # doctest: +SKIP
    """
    require_extra("lab", "unrolled.load")
    run: TrainedRun = importlib.import_module("unrolled.lab.training.run_folder").load_run(Path(path))
    return run


def open_run(path: Path, sentence: str, at: int | None) -> Any:
    """Open a run folder and one sentence for ``unrolled explain``."""
    require_extra("lab", "a run folder")
    return importlib.import_module("unrolled.lab.cli.open_run").open_run_folder(path, sentence, at)
