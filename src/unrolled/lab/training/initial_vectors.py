"""Initialise word embeddings from a file of word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from unrolled.errors import FileError, UsageError
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.word_vectors import read_vectors
from unrolled.lab.training.task import Task

__all__ = ["find_vectors", "set_initial_vectors"]


def find_vectors(path: Path, folder: Path | None = None) -> Path:
    """Find a file of word vectors at its path, or else, perhaps compressed, in the data folder."""
    if path.is_file():
        return path
    try:
        return find_file(str(path), folder)
    except (FileError, UsageError):
        raise FileError(f"no file of word vectors at {path} or in the data folder; give the path of one") from None


def set_initial_vectors(path: Path, task: Task[Any, Any], model: nn.Module) -> str:
    """Copy the word vectors of a file into a model, and return a line that says how many words were found."""
    embeddings = task.embeddings(model)
    if not embeddings:
        raise UsageError(f"vectors is {path}, but the task {task.name} has no word embeddings; leave vectors out")
    found = words = 0
    for vocabulary, embedding in embeddings:
        vectors = read_vectors(path, vocabulary, embedding.embedding_dim)
        with torch.no_grad():
            embedding.weight[vectors.found] = vectors.matrix[vectors.found].to(embedding.weight)
        found += int(vectors.found.sum())
        words += len(vocabulary)
    if not found:
        raise UsageError(f"vectors is {path}, which has none of the {words:,} words of the corpus; give another file")
    return f"initialised {found:,} of {words:,} word vectors from {path}"
