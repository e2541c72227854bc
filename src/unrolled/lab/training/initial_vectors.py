"""Word vectors to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from unrolled.errors import FileError, UsageError
from unrolled.lab.data.text_files import find_file
from unrolled.lab.data.word_vectors import read_vectors
from unrolled.lab.training.task import Task

__all__ = ["begin_with", "find_vectors"]


def find_vectors(path: Path, folder: Path | None = None) -> Path:
    """Find a file of vectors where it was named, or else in the data folder."""
    if path.is_file():
        return path
    try:
        return find_file(str(path), folder)
    except (FileError, UsageError):
        raise FileError(f"no file {path}, neither here nor in the data folder; expected word vectors") from None


def begin_with(path: Path, task: Task[Any, Any], model: nn.Module) -> str:
    """Give a model the word vectors of a file; they are trained on like all others."""
    embeddings = task.embeddings(model)
    if not embeddings:
        raise UsageError(f"vectors is {path}; expected none, as {task.name} has no words to give vectors to")
    found = words = 0
    for vocabulary, embedding in embeddings:
        vectors = read_vectors(path, vocabulary, embedding.embedding_dim)
        with torch.no_grad():
            embedding.weight[vectors.found] = vectors.matrix[vectors.found].to(embedding.weight)
        found += int(vectors.found.sum())
        words += len(vocabulary)
    if not found:
        raise UsageError(f"vectors is {path}; expected a file with words of the corpus, none of {words:,} is in it")
    return f"{found:,} of {words:,} words begin with their vector of {path}"
