"""Errors of a model that name the input on which it fails: empty, no tensor, of another type, an id without a row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from traceback import walk_tb

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.errors import ShapeError, UnrolledError, UsageError, first_line, kind_of
from unrolled.explanation.networks.find_network import RECURRENT_MODULES
from unrolled.explanation.numbers_of_two_types import of_another_type
from unrolled.held_forward.operations.operands import holds_numbers
from unrolled.user_models.all_modules import TABLES, all_modules

__all__ = ["named_failures"]


_ON_TEXT = re.compile(r"\bstr(ing|_)?\b")
"""How Python, numpy and torch name a text that they cannot read: not within "stride" or "distribution"."""

_ON_AXES = re.compile(r"unpack|out of range|\b\dD\b|size|shape|dimension", re.IGNORECASE)
"""How Python and torch say that a tensor has other axes than are read from it."""


@contextmanager
def named_failures(model: nn.Module, arguments: Sequence[object]) -> Iterator[None]:
    """Name the input of a model that fails because it is empty, no tensor, of another type, or an id without a row."""
    try:
        yield
    except (AttributeError, TypeError, ValueError) as error:
        for value in () if isinstance(error, UnrolledError) else arguments:
            if isinstance(value, str) and not _ON_TEXT.search(str(error)):
                continue  # a choice, such as a mode
            if (text := _text_in(value)) is not None:
                raise UsageError(
                    f"the model fails on the text {text[:40]!r}: {error}; pass the ids of its tokens if it expects "
                    "them: torch.tensor([[vocabulary[word] for word in words]]), with the vocabulary, or the "
                    "tokenizer, that the model was trained with; the words themselves go in tokens=words"
                ) from error
            if _is_table(value):
                raise UsageError(
                    f"the model fails on an argument that is {kind_of(value)}: {error}; pass a tensor if it expects "
                    "one: torch.tensor(numpy.asarray(x), dtype=torch.float32) of numbers, and dtype=torch.int64 of ids"
                ) from error
            if isinstance(value, Mapping) and _is_about(error, value):
                raise UsageError(
                    f"the model fails on an argument that is {kind_of(value)}: {error}; if its parts are arguments of "
                    "the model, pass them by their names: **inputs"
                ) from error
        if message := of_another_type(error, model, arguments):
            raise UsageError(message) from error
        _refuse_one_hot(error, model, arguments)
        if isinstance(error, ValueError) and _ON_AXES.search(str(error)):
            _refuse_one_without_batch(error, model, arguments)
        raise
    except (IndexError, RuntimeError) as error:
        _refuse_one_hot(error, model, arguments)
        if message := _id_without_row(error, arguments) or of_another_type(error, model, arguments):
            raise UsageError(message) from error
        for value in arguments:
            if isinstance(value, Tensor) and value.numel() == 0:
                shape = tuple(value.shape)
                raise ShapeError(
                    f"the model fails on an input of shape {shape}; expected at least one token"
                ) from error
        if "greater than 0" in str(error):  # torch's message for packing a sequence of no tokens
            raise ShapeError("a sentence of the batch has no tokens; expected at least one") from error
        _refuse_one_without_batch(error, model, arguments)
        raise


def _is_about(error: Exception, value: object) -> bool:
    """Whether an error names the type of a value, or says nothing, as that of a tokenizer's output does."""
    return not str(error) or re.search(rf"\b{re.escape(type(value).__name__)}\b", str(error)) is not None


def _refuse_one_without_batch(error: Exception, model: nn.Module, arguments: Sequence[object]) -> None:
    """Refuse the ids of one text, or the numbers of one series, that may lack the axis of a batch."""
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    if isinstance(error, UnrolledError) or not tensors:
        return
    shape = tuple(tensors[0].shape)
    if holds_numbers(tensors[0]):
        what, name = "numbers", "x"
        # of several tensors each may be a batch of vectors
        is_one = len(tensors) == 1 and len(shape) in (1, 2) and _reads_series(model) and _is_on_axes(error, shape)
    else:
        what, name, is_one = "ids", "ids", len(shape) == 1
    if is_one:
        raise ShapeError(
            f"the model fails on {what} of shape {shape}: {first_line(error)}; if it expects a batch, pass one of a "
            f"single example: {name}[None]"
        ) from error


def _refuse_one_hot(error: Exception, model: nn.Module, arguments: Iterable[object]) -> None:
    """Refuse one-hot numbers where a model with a table of vectors may look them up as ids."""
    looks_up = any(frame.f_code in _LOOK_UPS for frame, _ in walk_tb(error.__traceback__))
    if isinstance(error, UnrolledError) or not (looks_up or _ON_AXES.search(str(error))):
        return
    tables = [each for each in all_modules(model).values() if isinstance(each, TABLES)]
    most = max((len(each.weight) for each in tables if isinstance(each.weight, Tensor)), default=0)
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    if any(not holds_numbers(each) and not _is_one_hot(each) for each in tensors):
        return  # these may be the ids, and what is one-hot a mask
    for value in tensors:
        if value.dim() > 2 and value.shape[-1] <= most and _is_one_hot(value):
            raise UsageError(
                f"the model fails on one-hot numbers of {value.dtype} and shape {tuple(value.shape)}: "
                f"{first_line(error)}; it has an embedding, which looks up vectors by ids: pass x.argmax(-1) if it "
                "expects these"
            ) from error


def _reads_series(model: nn.Module) -> bool:
    return any(isinstance(each, RECURRENT_MODULES) for each in all_modules(model).values())


def _is_on_axes(error: Exception, shape: tuple[int, ...]) -> bool:
    """Whether an error is on the number of axes, and not on the width, which a batch of one example has as well."""
    rows = shape[0] if len(shape) == 2 else 1
    on_width = re.search(rf"Expected \d+, got {shape[-1]}\b|\({rows}x{shape[-1]} and ", str(error))
    return _ON_AXES.search(str(error)) is not None and on_width is None


def _id_without_row(error: Exception, arguments: Iterable[object]) -> str | None:
    """Say on which id, or type of ids, a look-up failed; None if none failed, or on an id that is no argument's."""
    called = [frame for frame, _ in walk_tb(error.__traceback__) if frame.f_code in _LOOK_UPS]
    if not called:
        return None
    read, rows = called[-1].f_locals["input"], len(called[-1].f_locals["weight"])
    if read.dtype not in (torch.int32, torch.int64):
        given = any(isinstance(each, Tensor) and each.dtype == read.dtype for each in arguments)
        advice = "pass ids.long()" if given else "the model makes these ids, so call .long() on them there"
        return f"the model looks up vectors by ids of {read.dtype}; expected torch.int64: {advice}"
    missing = read[(read < 0) | (read >= rows)]
    for value in arguments:
        if not isinstance(value, Tensor) or holds_numbers(value):
            continue
        outside = torch.isin(value, missing).nonzero()
        if len(outside):
            place = tuple(outside[0].tolist())
            return (
                f"the model fails on the id {int(value[place])} at {place}; expected ids from 0 to {rows - 1}, "
                "the rows of its embedding: use the vocabulary that the model was trained with"
            )
    return None


def _is_one_hot(value: Tensor) -> bool:
    """Tell whether the last axis of a tensor holds a one among zeros."""
    if (
        value.is_complex()
        or value.layout != torch.strided
        or not value.dim()
        or value.shape[-1] < 2
        or not value.numel()
    ):
        return False
    ones = value == 1
    return bool((ones | (value == 0)).all()) and bool((ones.sum(-1) == 1).all())


_LOOK_UPS = (F.embedding.__code__, F.embedding_bag.__code__)


def _text_in(value: object) -> str | None:
    """Return a text that is an argument, or the first one of a list or an array; None if there is none."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    if isinstance(value, np.ndarray) and value.dtype.kind in "USO" and value.size:
        value = value.reshape(-1)[0]
    return value if isinstance(value, str) else None


def _is_table(value: object) -> bool:
    """Whether numbers are given in another form than a tensor: an array, a data frame, nested lists."""
    return not isinstance(value, Tensor) and (hasattr(value, "__array__") or isinstance(value, list | tuple))
