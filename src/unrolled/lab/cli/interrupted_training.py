"""What to type after a training was interrupted or could not write: resume it, or, without a checkpoint, start anew."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unrolled.cli.interruption import received
from unrolled.errors import FileError, UnrolledError

__all__ = ["naming_the_way_on"]


@contextmanager
def naming_the_way_on(folder: Path) -> Iterator[None]:
    """Give a KeyboardInterrupt without a text, and a FileError, the command that goes on with the run in ``folder``."""
    before = _identity(folder)
    try:
        yield
    except FileError as error:
        from unrolled.lab.training.run_names import is_finished

        if _identity(folder) in (None, before) or is_finished(folder):
            raise
        run = shlex.quote(str(folder))
        raise FileError(f"{error}; when there is room, or it can be written, go on: unrolled resume {run}") from error
    except (KeyboardInterrupt, Exception) as error:
        stop = error if isinstance(error, KeyboardInterrupt) else KeyboardInterrupt()
        if isinstance(error, UnrolledError) or (stop is not error and received() is None):
            raise
        # else a signal, or what it has become on its way, as an import that failed
        if stop.args or _identity(folder) in (None, before):  # nothing of this training is there
            raise
        from unrolled.lab.training.run_names import is_finished

        run = shlex.quote(str(folder))
        if is_finished(folder):
            raise type(stop)(f"the training had ended when it was interrupted: unrolled evaluate {run}") from None
        raise type(stop)(f"interrupted; go on with: unrolled resume {run}") from None


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return which run a folder holds, if any."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
