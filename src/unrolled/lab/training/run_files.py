"""The files of a run folder, read with every mishap named: they may have been copied by halves, or edited."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from unrolled.errors import DataError, FileError

__all__ = ["present", "read_metrics", "read_object", "read_text", "read_weights", "to_json"]


def to_json(value: Mapping[str, Any]) -> bytes:
    """Write names and values."""
    return (json.dumps(dict(value), indent=1, ensure_ascii=False) + "\n").encode()


def present(folder: Path, name: str) -> Path:
    """Find a file of a run folder."""
    path = folder / name
    if not path.is_file():
        raise DataError(f"{folder}: the run folder lacks {name}; expected it beside config.json")
    return path


def read_text(path: Path) -> str:
    """Read a file of text."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected UTF-8 text; byte {error.start} is not") from None


def read_object(folder: Path, name: str) -> dict[str, Any]:
    """Read names and values."""
    path = present(folder, name)
    text = read_text(path)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected whole JSON; {error}") from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: expected names and values")
    return found


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read tensors."""
    try:
        return load_file(path)
    except SafetensorError as error:
        raise DataError(f"{path}: truncated or no safetensors file; {error}") from None


def read_metrics(folder: Path, name: str) -> dict[str, float]:
    """Read how well a run does."""
    path = present(folder, name)
    metrics = read_object(folder, name)
    metrics = {key: float("nan") if value is None else value for key, value in metrics.items()}
    if not all(isinstance(value, int | float) for value in metrics.values()):
        raise DataError(f"{path}: expected names and numbers")
    if "epochs" not in metrics:
        raise DataError(f"{path}: expected the number of epochs among {', '.join(metrics) or 'the metrics'}")
    return metrics
