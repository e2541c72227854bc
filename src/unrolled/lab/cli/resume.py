"""``unrolled resume RUN``: resume an interrupted training."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from unrolled.lab.cli.arguments import RunDataFolder, run_argument
from unrolled.lab.cli.printed_metrics import print_run
from unrolled.lab.cli.printed_notes import is_first_process, print_notes
from unrolled.named_sources import check_run
from unrolled.report.formatting import visible

__all__ = ["resume"]


def resume(
    run: Annotated[Path, run_argument("The run folder of an interrupted training.")],
    accept_changed_data: Annotated[
        bool,
        typer.Option("--accept-changed-data", help="Go on although the data have changed; the run records it."),
    ] = False,
    data_dir: RunDataFolder = None,
) -> None:
    """Resume a stopped training from its last checkpoint; on the same machine the result is the same, bit by bit.

    The settings are those of the run:

        unrolled resume runs/sst2-gru
    """
    check_run(run)
    from rich.console import Console

    from unrolled.lab.training.data_check import read_with_checksums
    from unrolled.lab.training.engine import resume as resume_training
    from unrolled.lab.training.progress import TrainingProgress
    from unrolled.lab.training.run_config import load_config
    from unrolled.lab.training.run_names import is_finished

    stopped, ended = load_config(run), is_finished(run)
    read = partial(stopped.data.reload_corpus, stopped.task.kind, data_dir, stopped.settings.seed)
    corpus, files = read_with_checksums(read, stopped.data, data_dir)
    print_notes(corpus.notes)
    first = is_first_process()
    with TrainingProgress(Console(stderr=True, quiet=not first), loss=stopped.task.loss_name) as progress:
        finished = resume_training(
            run,
            corpus,
            files=files,
            callback=progress,
            accept_changed_data=accept_changed_data,
        )
    if first and ended:
        typer.echo(
            f"{visible(str(run))} is already finished; nothing was trained. For other settings, train a new run",
            err=True,
        )
    if first:
        print_run(finished, corpus)
