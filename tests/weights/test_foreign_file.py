"""A file of another library is told by its kind wherever weights or a run folder are expected, and no other file is."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from torch import nn

from unrolled.weights.foreign_file import describe_foreign

Command = Callable[..., Any]


def made(folder: Path, name: str) -> Path:
    """Make a file that begins as those of another library do."""
    path = folder / name
    if name.endswith(".keras"):
        with ZipFile(path, "w") as archive:
            archive.writestr("config.json", "{}")
            archive.writestr("model.weights.h5", b"\x89HDF\r\n\x1a\n")
    elif name == "saved":
        path.mkdir()
        (path / "saved_model.pb").write_bytes(b"\x08\x01")
    elif name.startswith("array"):
        np.savez(path, w=np.ones(2)) if name.endswith("z") else np.save(path, np.ones(2))
    else:
        path.write_bytes({"weights.bin": b"\x89HDF\r\n\x1a\n"}.get(name, b"\x08\x08\x12\x07pytorch"))
    return path


FOREIGN = [
    ("model.onnx", "a model of ONNX"),
    ("MODEL.ONNX", "a model of ONNX"),
    ("weights.bin", "an HDF5 file, as Keras writes"),
    ("model.keras", "a model of Keras"),
    ("graph.pb", "a model of TensorFlow"),
    ("saved", "a model of TensorFlow"),
    ("model.tflite", "a model of TensorFlow Lite"),
    ("array.npz", "an archive of NumPy"),
    ("array.npy", "an array of NumPy"),
]


@pytest.mark.parametrize(("name", "kind"), FOREIGN)
def test_a_file_of_another_library_is_refused_by_its_kind(
    unrolled: Command, tmp_path: Path, name: str, kind: str
) -> None:
    path = made(tmp_path, name)
    (tmp_path / "words.txt").write_text("a\nb\n")
    for words in (
        ("convert", path, tmp_path / "new.safetensors"),
        ("explain", "--weights", path, "--vocab", tmp_path / "words.txt", "a b"),
    ):
        unrolled(*words).assert_refused(65, f"{name} is {kind},", "PyTorch")
    if not path.is_dir():
        unrolled("explain", path, "a b").assert_refused(65, f"{name} is {kind},")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
            "a pointer of Git LFS.*git lfs pull",
        ),
        (gzip.compress(b"weights", mtime=0), "compressed by gzip; give the file that is in it"),
    ],
)
def test_what_stands_for_a_file_is_told_from_one(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    assert re.search(expected, describe_foreign(tmp_path / "model.safetensors") or "")


def test_files_of_pytorch_and_damaged_ones_are_not_foreign(tmp_path: Path) -> None:
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / "model.h5")  # the bytes decide, not the name
    (tmp_path / "cut.pt").write_bytes(b"PK\x03\x04 and nothing more")
    (tmp_path / "empty.pt").touch()
    (tmp_path / "folder").mkdir()
    for name in ("model.h5", "cut.pt", "empty.pt", "folder", "none"):
        assert describe_foreign(tmp_path / name) is None


def test_a_file_where_a_run_folder_is_expected_is_told_how_weights_are_given(unrolled: Command, tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"anything")
    done = unrolled("explain", tmp_path / "model.pt", "a b")
    tensors = tmp_path / "model.safetensors"
    steps = (f"unrolled convert {tmp_path / 'model.pt'} {tensors}", f"--weights {tensors} --vocab")
    done.assert_refused(65, "not a run folder", *steps)
    tensors.write_bytes(b"anything")
    done = unrolled("explain", tensors, "a b")
    done.assert_refused(65, "not a run folder", f"--weights {tensors} --vocab")
    assert "convert" not in done.err
