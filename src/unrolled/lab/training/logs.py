"""The log of a training: one JSON object a line, and the same as a table.

It holds only what the seed decides. So the log of a training that was killed and resumed equals, byte for byte, the
log of one that was never stopped. Times are written to a file of their own.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unrolled.atomic_write import write_fully
from unrolled.errors import DataError, FileError
from unrolled.lab.training.callbacks import Epoch
from unrolled.lab.training.run_names import LOG, LOG_TABLE, TIMES
from unrolled.lab.training.task import Metric

__all__ = ["Logs", "read_history"]

_COMMON = ("step", "epoch", "loss", "norm", "lr")
_DEV = "dev_"


class Logs:
    """The files of the log, open for appending; each metric is a column."""

    def __init__(self, folder: Path, metrics: Sequence[Metric]) -> None:
        self._columns = (*_COMMON, *(_DEV + each.name for each in metrics), "best")
        self._open: dict[str, int] = {}
        self._paths = {name: folder / name for name in (LOG, LOG_TABLE, TIMES)}
        try:
            for name, path in self._paths.items():
                self._open[name] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            self.close()
            raise FileError(f"{error.filename}: cannot be opened: {error.strerror or error}") from None
        if not self.positions()[LOG_TABLE]:
            self._append(LOG_TABLE, ",".join(self._columns) + "\n")

    def close(self) -> None:
        """Close the files."""
        while self._open:
            os.close(self._open.popitem()[1])

    def positions(self) -> dict[str, int]:
        """Return the sizes of the files in bytes, by name."""
        return {name: os.fstat(descriptor).st_size for name, descriptor in self._open.items()}

    def sync(self) -> dict[str, int]:
        """Wait until all lines are on the disk, and return the sizes of the files."""
        for name, descriptor in self._open.items():
            try:
                os.fsync(descriptor)
            except OSError as error:
                raise self._unwritable(name, error) from None
        return self.positions()

    def truncate(self, positions: Mapping[str, int]) -> None:
        """Delete the lines that were written after a checkpoint; resuming writes them again."""
        for name, length in self.positions().items():
            if length < positions[name]:
                raise DataError(
                    f"{self._paths[name]} is damaged: it has {length} bytes, but {positions[name]} at the checkpoint"
                )
            os.ftruncate(self._open[name], positions[name])

    def log_steps(self, step: int, epoch: int, loss: float, norm: float, lr: float) -> None:
        """Write a line about the steps since the last line: mean loss and norm, and the last learning rate."""
        self._write(dict(zip(_COMMON, (step, epoch, loss, norm, lr), strict=True)))

    def log_epoch(self, epoch: Epoch, training: float, evaluation: float, predictions: int) -> None:
        """Write the line of an epoch, and how many seconds its training and its evaluation took."""
        self._write(epoch_to_record(epoch))
        rate = round(predictions / training, 1) if training else None
        times = {"epoch": epoch.number, "training": training, "evaluation": evaluation, "predictions_per_second": rate}
        self._append(TIMES, json.dumps(times) + "\n")

    def _write(self, record: Mapping[str, Any]) -> None:
        finite = {name: _finite(value) for name, value in record.items()}
        self._append(LOG, json.dumps(finite) + "\n")
        cells = (finite.get(column) for column in self._columns)
        self._append(LOG_TABLE, ",".join("" if cell is None else json.dumps(cell) for cell in cells) + "\n")

    def _append(self, name: str, line: str) -> None:
        try:
            write_fully(self._open[name], line.encode())
        except OSError as error:
            raise self._unwritable(name, error) from None

    def _unwritable(self, name: str, error: OSError) -> FileError:
        return FileError(f"cannot write {os.fspath(self._paths[name])!r}: {error.strerror or error}")


def epoch_to_record(epoch: Epoch) -> dict[str, Any]:
    """Return the log's line of an epoch as a JSON object."""
    common = zip(_COMMON, (epoch.step, epoch.number, epoch.loss, epoch.norm, epoch.lr), strict=True)
    dev = {_DEV + name: _finite(value) for name, value in epoch.dev.items()}
    return {**dict(common), **dev, "best": epoch.best}


def epoch_from_record(record: Mapping[str, Any]) -> Epoch:
    """Return the epoch of a line in the log."""
    try:
        step, number, loss, norm, lr = (record[name] for name in _COMMON)
        dev = {name.removeprefix(_DEV): _number(value) for name, value in record.items() if name.startswith(_DEV)}
        return Epoch(int(number), int(step), _number(loss), _number(norm), _number(lr), dev, bool(record["best"]))
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{str(record)[:60]!r} is not the record of an epoch") from None


def read_history(path: Path, text: str) -> tuple[Epoch, ...]:
    """Read the epochs of a log; ``path`` is only named in errors."""
    history = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise DataError(f"found {line[:60]!r}")
            if "best" in record:
                history.append(epoch_from_record(record))
        except (ValueError, RecursionError) as error:  # a DataError is a ValueError
            raise DataError(f"{path}:{number}: not a line of a log; {error}") from None
    return tuple(history)


def _finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON lacks, by None."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
