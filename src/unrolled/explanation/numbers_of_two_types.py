"""Errors of a model that meets numbers of two types: which part reads numbers of another type than its weights."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from traceback import walk_tb

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from unrolled.errors import UnrolledError, first_line
from unrolled.model_runs.nested_tensors import leaves
from unrolled.user_models.all_modules import all_buffers, all_modules, all_parameters

__all__ = ["of_another_type"]

_TWO_TYPES = re.compile(
    r"same dtype, |input dtype \(.+ weight dtype|must have the type .+ got type|should be the same|expected scalar type"
    r"|mixed dtype|not implemented for '|Type promoting not supported|get_mkldnn_dtype: unsupported data type"
)
"""How torch says that it has numbers of two types, or those of one that it cannot read."""
_TYPE = re.compile(r"torch\.(\w+)\b|\b(double|float|half|bfloat16|long|int)\b", re.IGNORECASE)
_NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64)


def of_another_type(error: Exception, model: nn.Module, arguments: Sequence[object]) -> str | None:
    """Say which type of numbers is read, and in which one the reader computes; None if torch names no two types."""
    text = first_line(error)
    if isinstance(error, UnrolledError) or not _TWO_TYPES.search(text):
        return None
    weights = _types_of(all_parameters(model).values())
    # half precision beside another is made for autocast, which model_runs/eval_mode.py names
    if weights == [torch.float32, torch.float64] and (message := _by_part(error, model, arguments)):
        return message
    if message := _by_buffer(error, model, arguments):
        return message
    read, computes_in = _failed_layer(error)
    pair = _types_named(text)
    if read is not None and computes_in is not None and computes_in != read.dtype:
        pair = [read.dtype, computes_in]
    given = {each.dtype for _, each in leaves(dict(enumerate(arguments)))}
    if len(pair) < 2 or pair[0] not in given or pair[0].is_complex or not pair[1].is_floating_point:
        return None  # the model made these numbers
    # of ids a model makes integers of their type, and of one of several types of numbers the other one
    certain = pair[0].is_floating_point and pair[1] not in given and len(weights) < 2
    if not certain and not _is_an_argument(read, pair[0], arguments):
        return None
    alone = pair[0].is_floating_point and pair[1] not in given  # else other arguments have the type of the model
    convert = f", or convert the model: model.to({pair[0]})" if alone else ""
    return f"the model fails on an argument of {pair[0]}, since it computes in {pair[1]}; pass x.to({pair[1]}){convert}"


def _by_part(error: Exception, model: nn.Module, arguments: Sequence[object]) -> str | None:
    """Name the part that failed of a model with weights of two types; None where the types do not tell."""
    path, part, read = _failed_part(error, model)
    own, named = _types_of(part.parameters()), _types_named(first_line(error))
    if read is None or read.is_complex() or not own or (named and read.dtype not in named):
        return None
    name = f"{path} ({type(part).__name__})" if path else "the model"
    given = _types_of(each for _, each in leaves(dict(enumerate(arguments))))
    to = given[0] if len(given) == 1 else read.dtype
    to = to if to == torch.float64 else torch.float32  # not half precision
    convert = f"convert the model: model.to({to})"
    if given not in ([], [to]):
        convert = f"convert the model and its arguments: model.to({to}), x.to({to})"
    if len(own) > 1:
        of_both = f"{name} has weights of {own[0]} and {own[1]}; {convert}"
        return of_both if len(named) > 1 and set(named) <= set(own) else None
    if own == [read.dtype]:
        return None
    among = "in a model with weights of torch.float32 and torch.float64"
    if _is_an_argument(read, read.dtype, arguments):
        instead = f"pass x.to({own[0]})"
        advice = f"{convert}, or {instead} if it needs both types" if given == [to] else instead
        return f"{name} computes in {own[0]}, and reads an argument of {read.dtype}, {among}; {advice}"
    if not read.is_floating_point():
        return None  # the model made these integers
    return f"{name} computes in {own[0]}, and reads numbers of {read.dtype}, {among}; {convert}"


def _by_buffer(error: Exception, model: nn.Module, arguments: Sequence[object]) -> str | None:
    """Name a buffer of another type than all weights, where torch fails on both types; None where it does not."""
    text, weights = first_line(error), _types_of(all_parameters(model).values())
    named = _types_named(text)
    if len(weights) != 1 or (len(named) < 2 and "mkldnn" not in text):
        return None
    given = _types_of(each for _, each in leaves(dict(enumerate(arguments))))
    for name, buffer in all_buffers(model).items():
        both = {buffer.dtype, *weights}
        if both == {torch.float32, torch.float64} and both >= {*named} and buffer.dtype not in given:
            return (
                f"the model meets numbers of {weights[0]} and {buffer.dtype}: its weights have the first type, its "
                f"buffer {name} the second; convert the model: model.to({weights[0]})"
            )
    return None


def _types_of(tensors: Iterable[Tensor]) -> list[torch.dtype]:
    """Return the types of floating-point numbers that tensors have, the coarsest first."""
    found = {each.dtype for each in tensors if each.is_floating_point()}
    return sorted(found, key=lambda each: (-torch.finfo(each).eps, str(each)))


def _failed_part(error: Exception, model: nn.Module) -> tuple[str, nn.Module, Tensor | None]:
    """Return the innermost module of a model that failed, with its path and what it reads; the model if none did."""
    paths = {id(module): path for path, module in all_modules(model).items()}
    found: tuple[str, nn.Module, Tensor | None] = ("", model, None)
    for module, value, _ in _forwards(error):
        if id(module) in paths:
            found = paths[id(module)], module, value
    return found


def _forwards(error: Exception) -> Iterator[tuple[nn.Module, Tensor, bool]]:
    """Walk through the modules that failed, the inner last: each, what it reads, and whether it is one of torch.nn."""
    for frame, _ in walk_tb(error.__traceback__):
        function = frame.f_code
        if function.co_name != "forward" or function.co_argcount < 2:
            continue
        module, value, *others = (frame.f_locals.get(name) for name in function.co_varnames[: function.co_argcount])
        if isinstance(module, nn.Module) and isinstance(value, Tensor):
            of_torch = frame.f_globals.get("__name__", "").startswith("torch.nn.modules.")
            yield module, _of_another_type_than(module, value, others) if of_torch else value, of_torch


def _of_another_type_than(layer: nn.Module, value: Tensor, others: Sequence[object]) -> Tensor:
    """Return what a layer reads first, or what it reads beside it if that alone is not of the type of its weights."""
    own = _types_of(layer.parameters())
    if own == [value.dtype]:
        for _, each in leaves(dict(enumerate(others))):
            if each.is_floating_point() and each.dtype not in own:
                return each
    return value


def _types_named(text: str) -> list[torch.dtype]:
    """Return the types that torch's message names: of what is read, and of what reads it."""
    named = [each for each in map(_type_of, _TYPE.findall(text)) if each is not None]
    pair = list(dict.fromkeys(named))[:2]
    return pair[::-1] if "got type" in text else pair


def _failed_layer(error: Exception) -> tuple[Tensor | None, torch.dtype | None]:
    """Return what the layer of torch.nn that failed reads, and the type of the numbers of its own weights."""
    read, computes_in = None, None
    for layer, value, of_torch in _forwards(error):
        if of_torch:
            own = layer.parameters(recurse=is_parametrized(layer))  # of a container, another layer may have failed
            read, computes_in = value, next((each.dtype for each in own if each.is_floating_point()), value.dtype)
    return read, computes_in


def _is_an_argument(read: Tensor | None, kind: torch.dtype, arguments: Sequence[object]) -> bool:
    """Whether what a layer reads is an argument of this type, not what the model made of others."""
    if read is None or read.dtype != kind:
        return False
    given = [each for _, each in leaves(dict(enumerate(arguments))) if each.dtype == kind]
    if not kind.is_floating_point:  # those of a count or of one-hot vectors may be among the ids
        given = [each for each in given if each.numel() == read.numel()]
    return any(bool(torch.isin(read.detach().double(), each.detach().double()).all()) for each in given)


def _type_of(name: tuple[str, str]) -> torch.dtype | None:
    """Return the type of numbers that torch calls by either name; None for another word."""
    found = getattr(torch, (name[0] or name[1]).lower(), None)
    return found if found in _NUMBERS else None
