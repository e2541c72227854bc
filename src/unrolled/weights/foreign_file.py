"""What a file is that holds no weights which are read here, by its name and its first bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile, ZipFile

__all__ = ["IN_PYTHON", "describe_foreign"]

IN_PYTHON = (
    "a model of another form is opened in Python: unrolled.explain(model, tokens), or unrolled.account where it has no "
    "recurrent network"
)

_HDF5 = "an HDF5 file, as Keras writes"
_KERAS = "a model of Keras"
_STARTS = {b"\x89HDF\r\n\x1a\n": _HDF5, b"\x93NUMPY": "an array of NumPy"}
_SUFFIXES = {".onnx": "a model of ONNX", ".pb": "a model of TensorFlow", ".tflite": "a model of TensorFlow Lite"}
_INSIDE = {"model.weights.h5": _KERAS}
_WRAPPED = {
    b"version https://git-lfs": "a pointer of Git LFS, which stands for the file; fetch the file: git lfs pull",
    b"\x1f\x8b": "compressed by gzip; give the file that is in it",
}
"""By its first bytes, a file that has to be fetched or unpacked before its weights can be read, and how."""


def describe_foreign(path: str | os.PathLike[str]) -> str | None:
    """Say that a file is of no PyTorch model, and what to do; None where it may be of one, or cannot be read."""
    path = Path(path)
    if path.is_dir():
        kind = "a model of TensorFlow" if (path / "saved_model.pb").is_file() else None
    else:
        start = _start(path)
        if wrapped := _beginning(start, _WRAPPED):
            return f"{path} is {wrapped}"
        kind = _beginning(start, _STARTS) or (_inside(path) or _SUFFIXES.get(path.suffix.lower()) if start else None)
    if kind is None:
        return None
    if kind in (_KERAS, _HDF5):
        return (
            f"{path} is {kind}, and the command opens models of PyTorch; in Python Keras makes it one: set "
            "the environment variable KERAS_BACKEND=torch, load it by model = keras.saving.load_model(path) (a file of "
            "weights alone: build the model, model.load_weights(path)), and call unrolled.explain(model, inputs)"
        )
    return (
        f"{path} is {kind}, and unrolled opens models of PyTorch; build the same network in PyTorch, copy the weights "
        "into it, compare the outputs of both, and call unrolled.explain(model, tokens)"
    )


def _start(path: Path) -> bytes:
    """Return the first bytes of a file; none of one that is empty, no file, or cannot be read."""
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as file:
            return file.read(max(map(len, (*_STARTS, *_WRAPPED))))
    except OSError:
        return b""  # the caller reads the file as well, and reports the error


def _beginning(start: bytes, kinds: Mapping[bytes, str]) -> str | None:
    return next((kind for begins, kind in kinds.items() if start.startswith(begins)), None)


def _inside(path: Path) -> str | None:
    try:
        with ZipFile(path) as archive:
            names = {Path(name).name for name in archive.namelist()}
    except (BadZipFile, OSError, ValueError):
        return None
    if names and all(name.endswith(".npy") for name in names):
        return "an archive of NumPy"
    return next((kind for name, kind in _INSIDE.items() if name in names), None)
