"""Numbers of arguments that a target reads itself, beside the model's output."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from unrolled.explanation.model_arguments import named_arguments
from unrolled.explanation.sources import is_mask
from unrolled.model_runs.nested_tensors import tensors_in

__all__ = ["note_arguments_beside"]

_Memory = tuple[torch.device, int]


def note_arguments_beside(
    target: object, run: Callable[[], object], args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[str, ...]:
    """Note numbers of arguments that a function reads by their own names: they have no contribution there.

    Args:
        target: What is explained.
        run: Returns an output of the model.
        args: The arguments of the model.
        kwargs: Those with names.
    """
    known = set(map(_memory, _numbers_in(list(_values_of_names(target)))))
    places = {
        _memory(each): name
        for name, value in named_arguments(args, kwargs).items()
        for each in _numbers_in(value)
        if _memory(each) in known and not is_mask(each)
    }
    if not places or not callable(target):
        return ()
    output = run()
    with _Reads(frozenset(places)) as reads:
        target(output)
    names = dict.fromkeys(name for memory, name in places.items() if memory in reads.found)
    if not names:  # such as len(x)
        return ()
    return (
        f"the target reads the numbers of {' and '.join(names)} itself, which are constants there; to see what they "
        "contribute by it, give a model whose forward returns what the target computes",
    )


class _Reads(TorchFunctionMode):
    """Finds which memory the operations read that make numbers, and not its shape alone."""

    def __init__(self, known: frozenset[_Memory]) -> None:
        super().__init__()
        self.known = known
        self.found: set[_Memory] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if not (name.endswith("_like") or name.startswith("new_")):
            made = {_memory(each) for each in _strided_in(result)}
            read = {_memory(each) for each in _numbers_in((args, kwargs))} & self.known
            self.found |= read if made - read else set()  # a view makes nothing
        return result


def _numbers_in(value: object) -> Iterator[Tensor]:
    return (each for each in _strided_in(value) if each.is_floating_point())


def _strided_in(value: object) -> Iterator[Tensor]:
    return (each for each in tensors_in(value) if each.layout == torch.strided and each.numel())


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


def _memory(tensor: Tensor) -> _Memory:
    """Tell whose memory a tensor reads: a view reads that of its tensor."""
    return tensor.device, tensor.untyped_storage().data_ptr()
