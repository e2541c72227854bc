"""What a file is that holds no weights which are read here, by its name and its first bytes."""

from __future__ import annotations

import os
from pathlib import Path
from zipfile import BadZipFile, ZipFile

__all__ = ["IN_PYTHON", "describe_foreign"]

IN_PYTHON = "a model of another form is explained in Python: unrolled.explain(model, tokens)"

_STARTS = {b"\x89HDF\r\n\x1a\n": "an HDF5 file, as Keras writes"}
_SUFFIXES = {".onnx": "a model of ONNX", ".pb": "a model of TensorFlow", ".tflite": "a model of TensorFlow Lite"}
_INSIDE = {"model.weights.h5": "a model of Keras"}


def describe_foreign(path: str | os.PathLike[str]) -> str | None:
    """Say that a file is of no PyTorch model, and what to do; None where it may be of one, or cannot be read."""
    kind = _kind(Path(path))
    if kind is None:
        return None
    return (
        f"{path} is {kind}, and unrolled opens models of PyTorch; build the same network in PyTorch, copy the weights "
        "into it, compare the outputs of both, and call unrolled.explain(model, tokens)"
    )


def _kind(path: Path) -> str | None:
    if path.is_dir():
        return "a model of TensorFlow" if (path / "saved_model.pb").is_file() else None
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError:
        return None  # the caller reads the file as well, and reports the error
    return _STARTS.get(start) or _inside(path) or _SUFFIXES.get(path.suffix.lower())


def _inside(path: Path) -> str | None:
    try:
        with ZipFile(path) as archive:
            names = {Path(name).name for name in archive.namelist()}
    except (BadZipFile, OSError, ValueError):
        return None
    return next((kind for name, kind in _INSIDE.items() if name in names), None)
