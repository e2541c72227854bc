"""Checkpoints: the whole state of a training after one step, in one file.

A checkpoint is a safetensors file with tensors, and a JSON record in its header. Its name holds the step and the first
digits of the SHA-256 of its bytes, so a damaged file is recognised. The newest two are kept, in case the newer one is
damaged. The best weights have a file of their own, which the checkpoint names.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from unrolled.atomic_write import atomic_write
from unrolled.errors import DataError, FileError

__all__ = ["Checkpoint", "Checkpoints"]


_NAME = re.compile(r"step-(\d{9})-([0-9a-f]{16})\.safetensors")
_BEST = re.compile(r"best-([0-9a-f]{16})\.safetensors")
_RECORD = "training"
_KEPT = 2

Checkpoint = tuple[dict[str, Tensor], dict[str, Any]]
"""Tensors by name, and a JSON record."""


class Checkpoints:
    """The checkpoints of one training."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, step: int, tensors: Mapping[str, Tensor], record: Mapping[str, Any]) -> None:
        """Write a checkpoint, and delete all but the newest two; ``record["best"]`` names the best weights."""
        content = save(dict(tensors), metadata={_RECORD: json.dumps(record)})
        atomic_write(self.folder / f"step-{step:09}-{_digest(content)}.safetensors", content, durable=True)
        self._prune(_KEPT)

    def save_best(self, tensors: Mapping[str, Tensor]) -> str:
        """Write the best weights so far and return the name of their file; those of earlier checkpoints stay."""
        content = save(dict(tensors))
        name = f"best-{_digest(content)}.safetensors"
        atomic_write(self.folder / name, content, durable=True)
        return name

    def newest(self, warn: Callable[[str], None]) -> Checkpoint:
        """Read the newest checkpoint that is not damaged; ``warn`` receives a line for each damaged one.

        FileError if one cannot be read: it may be whole, and readable later.
        """
        for path in self._files():
            try:
                return self._read(path)
            except DataError as error:
                warn(f"{error}; using the previous checkpoint")
        raise DataError(f"{self.folder}: every checkpoint is damaged or missing; train the run again")

    def drop_damaged(self) -> None:
        """Delete damaged checkpoints, but none that cannot be read now."""
        for path in self._files():
            try:
                self._read(path)
            except DataError:
                path.unlink()
            except FileError:
                pass

    def load_best(self, name: str) -> dict[str, Tensor]:
        """Read the best weights."""
        return load(_verified(self.folder / name))

    def keep_last(self) -> None:
        """Delete all but the newest checkpoint, and the best weights, which the run folder holds by now."""
        self._prune(1)
        for path in self.folder.glob("best-*.safetensors"):
            path.unlink()

    def _files(self) -> list[Path]:
        """List all checkpoints, the newest first."""
        found = [path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
        return sorted(found, key=lambda path: (path.name.split("-")[1], path.stat().st_mtime_ns), reverse=True)

    def _read(self, path: Path) -> Checkpoint:
        content = _verified(path)
        try:
            record, tensors = _record(content), load(content)
        except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise DataError(f"{path} is not a checkpoint of a training; {error!r:.80}") from None
        if record["best"] is not None:
            _verified(self.folder / record["best"])
        return tensors, record

    def _prune(self, kept: int) -> None:
        """Delete older checkpoints, best weights that no remaining one names, and temporary files of a killed write."""
        files = self._files()
        for path in files[kept:]:
            path.unlink()
        try:
            named = {_record(_header(path))["best"] for path in files[:kept]}
        except OSError:  # one cannot be read for the moment, so its best weights are not known
            return
        for path in [*self.folder.glob("best-*.safetensors"), *self.folder.glob(".*.tmp")]:
            if path.name not in named:
                path.unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _verified(path: Path) -> bytes:
    """Read a file whose name holds the digest of its bytes."""
    name = _NAME.fullmatch(path.name) or _BEST.fullmatch(path.name)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path} is missing") from None
    except OSError as error:
        raise FileError(
            f"{path}: cannot be read: {error.strerror or error}; make it readable, or move it away to go on from the "
            "checkpoint before it"
        ) from None
    if name is None or _digest(content) != name.groups()[-1]:
        raise DataError(f"{path} is damaged: its checksum is not the one in its name")
    return content


def _header(path: Path) -> bytes:
    """Read the beginning of a checkpoint, without its tensors."""
    with path.open("rb") as file:
        size = file.read(8)
        return size + file.read(int.from_bytes(size, "little"))


def _record(content: bytes) -> dict[str, Any]:
    """Read the JSON record in the header of a checkpoint; ValueError or KeyError if there is none."""
    size = int.from_bytes(content[:8], "little")
    record = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][_RECORD])
    if record["best"] is not None and not _BEST.fullmatch(record["best"]):
        raise ValueError("best is not the name of a file of best weights")
    return record
