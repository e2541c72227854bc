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
    beside = list(_numbers_in(list(_values_of_names(target))))
    known = [
        (name, each)
        for name, value in named_arguments(args, kwargs).items()
        for each in _numbers_in(value)
        if any(_share(each, other) for other in beside) and not is_mask(each)
    ]
    if not known or not callable(target):
        return ()
    output = run()
    with _Reads(known) as reads:
        target(output)
    if not reads.found:  # such as len(x)
        return ()
    return (
        f"the target reads the numbers of {' and '.join(reads.found)} itself, which are constants there; to see what "
        "they contribute by it, give a model whose forward returns what the target computes",
    )


class _Reads(TorchFunctionMode):
    """Finds the arguments whose numbers, and not their shapes alone, an operation reads that makes other numbers."""

    def __init__(self, known: Sequence[tuple[str, Tensor]]) -> None:
        super().__init__()
        self.known = known
        self.found: dict[str, None] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if not (name.endswith("_like") or name.startswith("new_")):
            read = list(_numbers_in((args, kwargs)))
            if any(_memory(each) not in map(_memory, read) for each in _strided_in(result)):  # a view makes nothing
                self.found |= dict.fromkeys(
                    argument for argument, value in self.known if any(_share(value, each) for each in read)
                )
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


def _share(one: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors have a number in common, as a tensor and a view have; two columns of one have none."""
    if _memory(one) != _memory(other):
        return False
    views = [_places(each) for each in (one, other)]
    taken = torch.zeros(1 + max(map(_last, views)), dtype=torch.bool, device="cpu")
    taken.as_strided(*views[0]).fill_(True)
    return bool(taken.as_strided(*views[1]).any())


def _places(tensor: Tensor) -> tuple[list[int], tuple[int, ...], int]:
    """Return shape, strides and offset of a tensor without repetitions, as those of ``expand``."""
    shape = [1 if stride == 0 else size for size, stride in zip(tensor.shape, tensor.stride(), strict=True)]
    return shape, tensor.stride(), int(tensor.storage_offset())


def _last(view: tuple[list[int], tuple[int, ...], int]) -> int:
    shape, strides, offset = view
    return offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def _memory(tensor: Tensor) -> tuple[torch.device, int]:
    return tensor.device, tensor.untyped_storage().data_ptr()
