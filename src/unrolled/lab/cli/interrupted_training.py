"""What to type after a training was interrupted or could not write: resume it, or, without a checkpoint, start anew."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unrolled.cli.interruption import advise_with
from unrolled.errors import FileError

__all__ = ["advising_how_to_go_on"]


@contextmanager
def advising_how_to_go_on(folder: Path) -> Iterator[None]:
    """Give a signal and a FileError, from here on, the command that goes on with the run in ``folder``."""
    from unrolled.lab.training.run_names import is_finished

    before = _identity(folder)
    run = shlex.quote(str(folder))

    def advice() -> str:
        if _identity(folder) in (None, before):  # nothing of this training is there
            return ""
        if is_finished(folder):
            return f"the training had ended when it was interrupted: unrolled evaluate {run}"
        return f"interrupted; go on with: unrolled resume {run}"

    advise_with(advice)
    try:
        yield
    except FileError as error:
        if _identity(folder) in (None, before) or is_finished(folder):
            raise
        raise FileError(f"{error}; when there is room, or it can be written, go on: unrolled resume {run}") from error


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return which run a folder holds, if any."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
