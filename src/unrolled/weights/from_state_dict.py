"""Build a classifier from its weights alone: embedding, recurrent network, last state, linear.

A file of tensors contains only names and shapes. For this architecture they are enough: torch's names show the
recurrent network, and the sizes show the embedding and the head. Where several tensors fit, the user must choose.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unrolled.errors import DataError, ShapeError, UsageError
from unrolled.weights.computed_weights import refuse_computed
from unrolled.weights.foreign_file import IN_PYTHON
from unrolled.weights.recurrent_weights import RecurrentWeights
from unrolled.weights.tensor_file import describe, read_tensors

__all__ = ["LastStateClassifier", "LoadedClassifier", "load_classifier"]


_COUNT = re.compile(r"(.*\.)?n_averaged")
"""What an averaged model counts beside its weights: torch.optim.swa_utils.AveragedModel."""


class LastStateClassifier(nn.Module):
    """Classify a sequence by the last state of its recurrent network.

    Of a bidirectional network the head reads the forward state after the last token and the backward state after the
    first token, as ``h_n`` holds them.

    Args:
        embedding: Maps word indices to vectors.
        encoder: A batch-first recurrent network.
        head: Maps the last state to the logits.
    """

    def __init__(self, embedding: nn.Embedding, encoder: nn.RNNBase, head: nn.Linear) -> None:
        super().__init__()
        self.embedding = embedding
        self.encoder = encoder
        self.head = head

    def forward(self, tokens: Tensor) -> Tensor:
        """Compute the logits, shape (batch, classes), of word indices, shape (batch, time), without padding."""
        if tokens.ndim != 2 or 0 in tokens.shape:
            raise ShapeError(f"tokens have shape {tuple(tokens.shape)}; expected (batch, time), neither of them 0")
        states = self.encoder(self.embedding(tokens))[0]
        forward, *backward = states.chunk(2 if self.encoder.bidirectional else 1, dim=-1)
        return self.head(torch.cat([forward[:, -1], *(each[:, 0] for each in backward)], dim=-1))


@dataclass(frozen=True)
class LoadedClassifier:
    """A classifier from a file of weights."""

    model: LastStateClassifier
    """In evaluation mode."""
    unused: tuple[str, ...]
    """Names of the tensors that are no part of it."""
    cells: tuple[str, ...]
    """Names of the cells that were taken for the layers of its network, the first layer first."""


def load_classifier(
    path: str | os.PathLike[str],
    *,
    words: int,
    rnn: str | None = None,
    embedding: str | None = None,
    head: str | None = None,
    nonlinearity: str | None = None,
) -> LoadedClassifier:
    """Build a classifier from a safetensors file.

    ``words`` is the size of the vocabulary, which must be the number of rows of the embedding; one that is named may
    have more. The other arguments name the prefix of the recurrent network, the embedding, the head's matrix, and the
    non-linearity of an Elman network; they are needed only where the tensors leave a choice.
    """
    tensors = {name: tensor for name, tensor in read_tensors(path).items() if not _COUNT.fullmatch(name)}
    refuse_computed(tensors)
    weights = RecurrentWeights.find(tensors, rnn)
    network = weights.build(nonlinearity)
    directions = 2 if network.bidirectional else 1
    state = directions * (network.proj_size or network.hidden_size)

    around = {name: tensor for name, tensor in tensors.items() if name not in weights.names}
    words_name = _find_embedding(around, embedding, words, network.input_size)
    name = _find_head(around, head, state, words_name)
    matrix, bias = around[name], around.get(_bias_name(name))
    used = (words_name, name, _bias_name(name))
    rest = {each: tensor for each, tensor in around.items() if each not in used}
    if rest and head is None:
        raise UsageError(
            f"the file also holds {describe(rest)}; expected only embedding, recurrent network and linear head: "
            f"{IN_PYTHON}. If the others are no part of its output, give --head {name}"
        )
    readout = nn.Linear(state, len(matrix), bias=bias is not None, dtype=matrix.dtype)
    if bias is not None and (bias.shape != matrix.shape[:1] or not bias.is_floating_point()):
        raise DataError(
            f"{_bias_name(name)} does not fit {name}: expected {len(matrix)} floating-point numbers, one for each class"
        )
    readout.load_state_dict({"weight": matrix} | ({} if bias is None else {"bias": bias}))
    model = LastStateClassifier(nn.Embedding.from_pretrained(around[words_name]), network, readout)
    return LoadedClassifier(model.eval(), tuple(rest), tuple(path.rstrip(".") for path in weights.cells))


def _matrices(tensors: Mapping[str, Tensor], columns: int) -> dict[str, Tensor]:
    return {
        name: tensor
        for name, tensor in tensors.items()
        if tensor.is_floating_point() and tensor.ndim == 2 and tensor.shape[1] == columns
    }


def _find_embedding(tensors: Mapping[str, Tensor], key: str | None, words: int, size: int) -> str:
    fitting = _fitting(tensors, key, size, "--embedding", "which the recurrent network reads")
    if not fitting:
        raise DataError(
            f"no embedding of {size} columns, which the recurrent network reads; found {describe(tensors)}; {IN_PYTHON}"
        )
    exact = [name for name, tensor in fitting.items() if len(tensor) == words or (key and len(tensor) > words)]
    if not exact:
        larger = next((name for name, tensor in fitting.items() if len(tensor) > words), None)
        named = f"; if the last rows alone have none, give --embedding {larger}" if larger else ""
        raise DataError(
            f"the vocabulary has {words} words; expected an embedding of as many rows, found {describe(fitting)}; give "
            f"the words in the order of their rows, and any name for a row without a word{named}"
        )
    if len(exact) > 1:
        # of tied weights the head alone has a bias beside them
        plain = [name for name in exact if _bias_name(name) not in tensors]
        if plain and all(torch.equal(tensors[name], tensors[plain[0]]) for name in exact):
            return plain[0]
        raise UsageError(f"several tensors may be the embedding: {', '.join(exact)}; name one with --embedding")
    return exact[0]


def _find_head(tensors: Mapping[str, Tensor], key: str | None, size: int, embedding: str) -> str:
    """Find the head; it is the embedding only where ``key`` says so."""
    fitting = _fitting(tensors, key, size, "--head", "the length of the last state")
    if key is not None:
        return key
    shared = fitting.pop(embedding, None) is not None
    if not fitting:
        others = {name: tensor for name, tensor in tensors.items() if name != embedding}
        tied = f"; if the head has the weights of the embedding, give --head {embedding}" if shared else ""
        raise DataError(
            f"no head of {size} columns, the length of the last state; found {describe(others)}; {IN_PYTHON}{tied}"
        )
    if len(fitting) > 1:
        raise UsageError(f"several tensors may be the head: {describe(fitting)}; name one with --head; {IN_PYTHON}")
    return next(iter(fitting))


def _fitting(tensors: Mapping[str, Tensor], key: str | None, columns: int, flag: str, why: str) -> dict[str, Tensor]:
    """Return the matrices of so many columns; the one that is named by ``key`` alone, if there is one, must fit."""
    if key is None:
        return _matrices(tensors, columns)
    if key not in tensors:
        raise UsageError(f"{flag} {key}: no such tensor; expected one of {describe(tensors)}")
    found = _matrices({key: tensors[key]}, columns)
    if not found:
        kind = str(tensors[key].dtype).removeprefix("torch.")
        raise UsageError(
            f"{flag} {key}: {kind} of shape {list(tensors[key].shape)}; expected a floating-point matrix of {columns} "
            f"columns, {why}"
        )
    return found


def _bias_name(matrix: str) -> str:
    """Return torch's name of the bias beside a matrix: ``fc.weight``, ``fc.bias``."""
    return matrix.removesuffix("weight") + "bias"
