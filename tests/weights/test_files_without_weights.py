"""Files and folders from which no network can be rebuilt: each is told from the others, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from unrolled.errors import DataError, FileError
from unrolled.weights.from_state_dict import load_classifier

WORDS = 11


def network(kind: type[nn.RNNBase]) -> nn.ModuleDict:
    """A classifier that can be rebuilt from its tensors."""
    return nn.ModuleDict({"words": nn.Embedding(WORDS, 5), "core": kind(5, 6), "out": nn.Linear(6, 3)})


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file(network(nn.LSTM).state_dict(), path)
    load_classifier(path, words=WORDS)
    whole = path.read_bytes()
    for length in (0, 4, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match="no safetensors file, or is truncated"):
            load_classifier(path, words=WORDS)


def test_a_pickle_is_not_read_but_the_way_to_convert_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save(network(nn.GRU).state_dict(), path)
    with pytest.raises(DataError, match="unrolled convert"):
        load_classifier(path, words=WORDS)


def test_a_file_that_is_not_there_is_another_matter(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.safetensors: cannot be read"):
        load_classifier(tmp_path / "none.safetensors", words=WORDS)


def test_a_folder_and_a_list_of_parts_are_told_from_a_file_of_weights(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"is a folder; .* it has no \.safetensors file"):
        load_classifier(tmp_path, words=WORDS)
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(FileError, match=r"is a folder; .* it has model\.safetensors"):
        load_classifier(tmp_path, words=WORDS)
    parts = tmp_path / "model.safetensors.index.json"
    parts.write_text('{"weight_map": {}}')
    with pytest.raises(DataError, match="lists the files over which weights are spread"):
        load_classifier(parts, words=WORDS)
