"""Numbers of arguments that a target reads itself, beside the model's output."""

from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from unrolled.explanation.model_arguments import named_arguments
from unrolled.explanation.sources import is_mask
from unrolled.model_runs.nested_tensors import tensors_in

__all__ = ["note_arguments_beside"]


def note_arguments_beside(target: object, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[str, ...]:
    """Note numbers of arguments that a function reads by their own names: they have no contribution there."""
    read = set(map(_memory, _numbers_in(list(_values_of_names(target)))))
    names = [
        name
        for name, value in named_arguments(args, kwargs).items()
        if any(_memory(each) in read and not is_mask(each) for each in _numbers_in(value))
    ]
    if not names:
        return ()
    return (
        f"the target reads the numbers of {' and '.join(names)} itself, which are constants there; to see what they "
        "contribute by it, give a model whose forward returns what the target computes",
    )


def _numbers_in(value: object) -> Iterator[Tensor]:
    return (
        each for each in tensors_in(value) if each.is_floating_point() and each.layout == torch.strided and each.numel()
    )


def _values_of_names(target: object) -> Iterator[Any]:
    """List what a function of Python finds under names that are not its own: in its closure, or global."""
    if not isinstance(target, FunctionType):
        return
    for cell in target.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a name that is not bound yet
            continue
    for each in dis.get_instructions(target):
        if each.opname == "LOAD_GLOBAL" and each.argval in target.__globals__:
            yield target.__globals__[each.argval]
    yield from target.__defaults__ or ()
    yield from (target.__kwdefaults__ or {}).values()


def _memory(tensor: Tensor) -> tuple[Any, int]:
    """Tell whose memory a tensor reads: a view reads that of its tensor."""
    return tensor.device, tensor.untyped_storage().data_ptr()
