"""Read the files of a run folder and check their content: a copy may be incomplete, or somebody may have edited it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.errors import DataError, FileError

if TYPE_CHECKING:
    from torch import Tensor


__all__ = [
    "read_json",
    "read_metrics",
    "read_text",
    "read_unchecked_json",
    "read_weights",
    "required_file",
    "to_json",
    "weights_content",
]


_CHECKSUM = "checksum"


def to_json(value: Mapping[str, Any]) -> bytes:
    """Encode a JSON object as the content of a file, with a checksum of its own."""
    record = {**value, _CHECKSUM: _checksum(value)}
    try:
        return (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # a path with bytes that are no text
        return (json.dumps(record, indent=1) + "\n").encode()


def _checksum(value: Mapping[str, Any]) -> str:
    text = json.dumps(dict(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def required_file(folder: Path, name: str) -> Path:
    """Return the path of a file that a run folder must have."""
    path = folder / name
    if not path.is_file():
        raise DataError(f"{folder}: the run folder lacks {name}, which belongs beside config.json")
    return path


def read_text(path: Path) -> str:
    """Read a UTF-8 text file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is not valid UTF-8; expected a UTF-8 text file") from None


def read_json(folder: Path, name: str, *, checksum: bool) -> dict[str, Any]:
    """Read a file that holds one JSON object, and compare its checksum.

    Args:
        folder: The run folder.
        name: The name of the file.
        checksum: Whether it must have a checksum; runs of earlier versions have none. Null stands for none.

    Returns:
        The object without its checksum.
    """
    found = read_unchecked_json(folder, name)
    path = folder / name
    if _CHECKSUM not in found:
        if checksum:
            raise DataError(f"{path} is damaged or incomplete: it lacks its checksum; restore the file")
        return found
    expected = found.pop(_CHECKSUM)
    if expected is not None and expected != _checksum(found):
        raise DataError(
            f"{path} has changed since it was written: its checksum is another one. Restore the file; if you changed "
            'it on purpose, set "checksum" to null in it'
        )
    return found


def read_unchecked_json(folder: Path, name: str) -> dict[str, Any]:
    """Read a file that holds one JSON object, as it is."""
    path = required_file(folder, name)
    text = read_text(path)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON, or truncated; {error}") from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: expected a JSON object")
    return found


def weights_content(tensors: Mapping[str, Tensor]) -> bytes:
    """Encode tensors as the content of a safetensors file, with a checksum of their values."""
    from safetensors.torch import save

    from unrolled.weights.checksum import CHECKSUM, tensors_checksum

    return save(dict(tensors), metadata={CHECKSUM: tensors_checksum(tensors)})


def read_weights(path: Path, *, checksum: bool) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file by name; ``checksum`` says whether it must have one."""
    from safetensors import SafetensorError, safe_open

    from unrolled.weights.checksum import check_tensors

    try:
        with safe_open(path, framework="pt") as file:
            tensors, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118  # no dictionary
    except SafetensorError as error:
        raise DataError(f"{path}: not a safetensors file, or truncated; {error}") from None
    except RuntimeError as error:  # so safetensors calls a file that it cannot open
        raise FileError(f"{path}: cannot be read; {error}") from None
    if not check_tensors(tensors, metadata, path) and checksum:
        raise DataError(f"{path} is damaged or of another run: it lacks its checksum")
    return tensors


def read_metrics(folder: Path, name: str, *, checksum: bool) -> dict[str, float]:
    """Read the metrics of a run by name; JSON's null stands for NaN."""
    path = required_file(folder, name)
    metrics = read_json(folder, name, checksum=checksum)
    metrics = {key: float("nan") if value is None else value for key, value in metrics.items()}
    if not all(isinstance(value, int | float) for value in metrics.values()):
        raise DataError(f"{path}: expected a number for every name")
    if "epochs" not in metrics:
        raise DataError(f"{path}: the number of epochs is missing from {', '.join(metrics) or 'the metrics'}")
    return metrics
