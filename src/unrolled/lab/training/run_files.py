"""Read the files of a run folder and check their content: a copy may be incomplete, or somebody may have edited it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from unrolled.errors import DataError, FileError

__all__ = [
    "read_boolean",
    "read_count",
    "read_json",
    "read_metrics",
    "read_names",
    "read_number",
    "read_text",
    "read_weights",
    "required_file",
    "to_json",
]


def to_json(value: Mapping[str, Any]) -> bytes:
    """Encode a JSON object as the content of a file."""
    return (json.dumps(dict(value), indent=1, ensure_ascii=False) + "\n").encode()


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


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """Read a file that holds one JSON object."""
    path = required_file(folder, name)
    text = read_text(path)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON, or truncated; {error}") from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: expected a JSON object")
    return found


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file by name."""
    try:
        return load_file(path)
    except SafetensorError as error:
        raise DataError(f"{path}: not a safetensors file, or truncated; {error}") from None


def read_metrics(folder: Path, name: str) -> dict[str, float]:
    """Read the metrics of a run by name; JSON's null stands for NaN."""
    path = required_file(folder, name)
    metrics = read_json(folder, name)
    metrics = {key: float("nan") if value is None else value for key, value in metrics.items()}
    if not all(isinstance(value, int | float) for value in metrics.values()):
        raise DataError(f"{path}: expected a number for every name")
    if "epochs" not in metrics:
        raise DataError(f"{path}: the number of epochs is missing from {', '.join(metrics) or 'the metrics'}")
    return metrics


def read_names(record: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Read a list of at least one name, all different."""
    found = record.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(each, str) for each in found):
        raise DataError(f"{key} is {str(found)[:40]}; expected a list of names")
    if len(set(found)) < len(found):
        raise DataError(f"{key} contains a name twice; expected different names")
    return tuple(found)


def read_number(record: Mapping[str, Any], key: str) -> float:
    """Read a finite number."""
    found = record.get(key)
    if not isinstance(found, int | float) or isinstance(found, bool) or not math.isfinite(found):
        raise DataError(f"{key} is {str(found)[:40]}; expected a finite number")
    return float(found)


def read_count(record: Mapping[str, Any], key: str) -> int:
    """Read a positive whole number."""
    found = record.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise DataError(f"{key} is {str(found)[:40]}; expected a positive whole number")
    return found


def read_boolean(record: Mapping[str, Any], key: str) -> bool:
    """Read true or false."""
    found = record.get(key)
    if not isinstance(found, bool):
        raise DataError(f"{key} is {str(found)[:40]}; expected true or false")
    return found
