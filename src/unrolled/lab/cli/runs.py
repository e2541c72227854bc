"""Runs that a command uses: loaded, checked for their task, and given a sentence to explain."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from unrolled.cli.prepared_input import PreparedInput
from unrolled.errors import UsageError
from unrolled.report.formatting import harmless
from unrolled.report.unknown_words import mark_unknown, note_unknown

if TYPE_CHECKING:
    from torch import nn

    from unrolled.lab.training.run_folder import Run

__all__ = ["has_recurrent_network", "load_for_task", "load_with_warning", "open_run", "prepare_sentence"]

T = TypeVar("T")


def has_recurrent_network(model: nn.Module) -> bool:
    """Tell whether ``explain`` can open a model: n-gram models and baselines have no recurrent network."""
    from unrolled.decomposition.opening.network_cells import Network

    return any(isinstance(part, Network) for part in model.modules())


def load_with_warning(folder: Path) -> Run:
    """Load a run to use it; warn if its training has not ended."""
    from unrolled.lab.training.run_folder import load_run

    run = load_run(folder)
    if run.warning:
        typer.echo(f"warning: {harmless(run.warning)}", err=True)
    return run


def load_for_task(folder: Path, kind: type[T], wanted: str) -> tuple[Run, T]:
    """Load a run of one kind of task; UsageError, which says what runs are wanted, for a run of another one."""
    run = load_with_warning(folder)
    if not isinstance(run.task, kind):
        raise UsageError(f"{folder} was trained for {run.task.name}; give a run of {wanted}")
    return run, run.task


def open_run(folder: Path, at: int | None = None) -> Callable[[str], PreparedInput]:
    """Load a run folder; return what prepares a sentence for it."""
    return partial(prepare_sentence, load_with_warning(folder), at=at)


def prepare_sentence(run: Run, sentence: str, at: int | None = None) -> PreparedInput:
    """Prepare a trained model and a sentence to be explained."""
    from unrolled.lab.data.vocabulary import UNKNOWN_WORD

    if not has_recurrent_network(run.model):
        raise UsageError(
            f"{run.folder} was trained with {run.task.architecture.encoder}, which is not a recurrent network; "
            "give a run of rnn, gru, lstm or a recurrent cell"
        )
    prepared = run.task.prepare(run.model, sentence, at)
    return PreparedInput(
        model=prepared.model,
        inputs=prepared.inputs,
        tokens=mark_unknown(prepared.tokens, prepared.unknown),
        labels=prepared.outputs,
        notes=note_unknown(prepared.unknown, UNKNOWN_WORD),
        rnn=prepared.rnn,
    )
