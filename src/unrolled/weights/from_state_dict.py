"""A network out of its weights alone: embedding → recurrent network → last state → linear.

A file of tensors says nothing about the model they came from but their names and shapes. For this one
architecture, the plainest classifier there is, that is enough: the recurrent network shows in torch's names,
the embedding and the head in the sizes that must meet it. What is not certain is asked for, never guessed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from unrolled.errors import DataError, FileError, NonFiniteError, UsageError
from unrolled.weights.classifier import LastStateClassifier
from unrolled.weights.recurrent_weights import RecurrentWeights, describe

__all__ = ["LoadedClassifier", "load_classifier", "read_tensors"]


@dataclass(frozen=True)
class LoadedClassifier:
    """What was made of a file of weights."""

    model: LastStateClassifier
    """In evaluation mode. Of a bidirectional network it reads the forward net's state after the last token
    beside the backward net's after the first, as ``h_n`` holds them."""
    unused: tuple[str, ...]
    """The names of the tensors that belong to none of its parts."""


def read_tensors(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read a safetensors file and make sure that its numbers are numbers.

    Args:
        path: the file.

    Returns:
        Its tensors by name; the floating-point ones all become float32, or float64 if one of them is,
        neither of which changes a value.

    Raises:
        FileError: when it cannot be read.
        DataError: when it is no safetensors file, or is cut short.
        NonFiniteError: when a tensor holds NaN or infinity.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors = dict(sorted(load(Path(path).read_bytes()).items()))
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from error
    except (SafetensorError, KeyError) as error:
        raise DataError(
            f"{path} is no safetensors file, or is cut short ({error}); "
            "a checkpoint of torch.save becomes one by: unrolled convert model.pt model.safetensors"
        ) from error
    floating = {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
    dtype = torch.float64 if any(t.dtype == torch.float64 for t in floating.values()) else torch.float32
    for name, tensor in floating.items():
        tensors[name] = tensor.to(dtype)
        if not torch.isfinite(tensors[name]).all():
            raise NonFiniteError(f"{path}: {name} holds NaN or infinity; expected numbers")
    return tensors


def load_classifier(
    path: str | os.PathLike[str],
    *,
    words: int,
    rnn: str | None = None,
    embedding: str | None = None,
    head: str | None = None,
    nonlinearity: str | None = None,
) -> LoadedClassifier:
    """Build a classifier out of a file of weights.

    Args:
        path: a safetensors file.
        words: how many words the vocabulary has, which is how many rows the embedding must have.
        rnn: the prefix of the recurrent network, if there are several.
        embedding: the name of the embedding, if the shapes leave a choice.
        head: the name of the head's matrix, if the shapes leave a choice.
        nonlinearity: ``"tanh"`` or ``"relu"``, for an Elman network.

    Returns:
        The classifier, and the names of the tensors that it has no place for.

    Raises:
        DataError: when the file is no such network.
        UsageError: when an argument is needed to settle what the tensors are, or names none of them.
    """
    tensors = read_tensors(path)
    weights = RecurrentWeights.find(tensors, rnn)
    network = weights.build(nonlinearity)
    directions = 2 if network.bidirectional else 1
    state = directions * (network.proj_size or network.hidden_size)

    rest = {name: tensor for name, tensor in tensors.items() if name not in weights.names}
    table = rest.pop(_find_embedding(rest, embedding, words, network.input_size))
    name = _find_head(rest, head, state)
    matrix = rest.pop(name)
    bias = rest.pop(_bias_name(name), None)
    if rest and head is None:
        raise UsageError(
            f"beside embedding, recurrent network and head the file holds {describe(rest)}; a bare network "
            f"is embedding → last state → linear. If these do not matter, say so with --head {name}"
        )
    readout = nn.Linear(state, len(matrix), bias=bias is not None, dtype=matrix.dtype)
    try:
        readout.load_state_dict({"weight": matrix} | ({} if bias is None else {"bias": bias}))
    except RuntimeError:
        raise DataError(
            f"{_bias_name(name)} does not fit {name}: expected {len(matrix)} numbers, one a class"
        ) from None
    model = LastStateClassifier(nn.Embedding.from_pretrained(table), network, readout)
    return LoadedClassifier(model.eval(), tuple(rest))


def _matrices(tensors: Mapping[str, Tensor], columns: int) -> dict[str, Tensor]:
    return {
        name: tensor
        for name, tensor in tensors.items()
        if tensor.is_floating_point() and tensor.ndim == 2 and tensor.shape[1] == columns
    }


def _find_embedding(tensors: Mapping[str, Tensor], key: str | None, words: int, size: int) -> str:
    fitting = _matrices(_chosen(tensors, key, "--embedding"), size)
    if not fitting:
        raise DataError(f"no embedding of {size} columns, which the recurrent network reads; found {describe(tensors)}")
    exact = [name for name, tensor in fitting.items() if len(tensor) == words]
    if not exact:
        raise DataError(
            f"the vocabulary has {words} words; expected an embedding of as many rows, found {describe(fitting)}"
        )
    if len(exact) > 1:
        raise UsageError(f"several tensors may be the embedding: {', '.join(exact)}; name one with --embedding")
    return exact[0]


def _find_head(tensors: Mapping[str, Tensor], key: str | None, size: int) -> str:
    fitting = _matrices(_chosen(tensors, key, "--head"), size)
    if not fitting:
        raise DataError(f"no head of {size} columns, the length of the last state; found {describe(tensors)}")
    if len(fitting) > 1:
        raise UsageError(f"several tensors may be the head: {describe(fitting)}; name one with --head")
    return next(iter(fitting))


def _chosen(tensors: Mapping[str, Tensor], key: str | None, flag: str) -> Mapping[str, Tensor]:
    if key is None:
        return tensors
    if key not in tensors:
        raise UsageError(f"{flag} {key}: no such tensor; expected one of {describe(tensors)}")
    return {key: tensors[key]}


def _bias_name(matrix: str) -> str:
    """Give the name that torch gives the bias beside a matrix: ``fc.weight``, ``fc.bias``."""
    return matrix.removesuffix("weight") + "bias"
