"""Standard output whose reader may leave (`| head`): the command ends there, unless files are still to be written.

Where the disk is full (`> predictions.csv`), the error says that it is the output that could not be written.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast

from unrolled.errors import FileError

__all__ = ["ReaderLeft", "outlast_reader", "watched_output"]


class ReaderLeft(Exception):  # noqa: N818  # it is not an error, so its name does not end in Error
    """The reader of standard output has left."""


class _Watched:
    """A stream that sends the rest of the output to nowhere once its reader has left."""

    def __init__(self, stream: TextIO, lasting: bool) -> None:
        self.stream = stream
        self.lasting = lasting
        """Whether the command goes on without a reader."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        try:
            return self.stream.write(text)
        except BrokenPipeError:
            self._drop()
            return len(text)
        except OSError as error:
            raise self._unwritable(error) from None

    def flush(self) -> None:
        try:
            self.stream.flush()
        except BrokenPipeError:
            self._drop()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> FileError:
        name = "the messages (standard error)" if self.stream is sys.__stderr__ else "the output (standard output)"
        return FileError(f"cannot write {name}: {error.strerror or error}; it is not whole")

    def _drop(self) -> None:
        # without this, Python reports the closed pipe again when it flushes the stream at its exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())
        if not self.lasting:
            raise ReaderLeft


@contextmanager
def watched_output() -> Iterator[None]:
    """Raise ReaderLeft where something is printed that nobody reads; typer would end the process with an error.

    Notes and the progress on stderr are no output: a command goes on without their reader (`2>&1 | head`).
    """
    plain = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        cast("TextIO", _Watched(each, lasting)) for each, lasting in zip(plain, (False, True), strict=True)
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = plain


@contextmanager
def outlast_reader(files: Iterable[Path | None]) -> Iterator[None]:
    """Go on when the reader of standard output leaves, if any file is to be written."""
    output = sys.stdout
    if not any(files) or not isinstance(output, _Watched):
        yield
        return
    output.lasting = True
    try:
        yield
    finally:
        output.lasting = False
