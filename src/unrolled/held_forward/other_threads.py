"""Vectors that other threads look up in a model that runs here: no mode of this thread meets their operations.

What another thread makes of value is refused by its graph. A look-up begins one, as what was made before the run does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from torch import Tensor, nn
from torch.autograd.graph import Node

from unrolled.held_forward.all_modules import all_modules
from unrolled.held_forward.graph import without_rule
from unrolled.held_forward.operands import for_each_tensor
from unrolled.held_forward.tensor_notes import TensorNotes
from unrolled.held_forward.this_thread import in_this_thread

__all__ = ["is_of_another_thread", "look_ups_noted", "refused_from_other_threads"]

_MADE: TensorNotes[str] = TensorNotes()
"""The vectors that other threads have looked up, with the names of the modules."""
_MARK = "unrolled: looked up in another thread"


@contextmanager
def look_ups_noted(model: nn.Module) -> Iterator[None]:
    """Note what other threads look up in a model; one that only uses the model as well is not disturbed."""
    handles = [
        module.register_forward_hook(in_this_thread(lambda *_: None, elsewhere=partial(_note, path)))
        for path, module in all_modules(model).items()
        if isinstance(module, nn.Embedding | nn.EmbeddingBag)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _note(path: str, _module: nn.Module, _given: object, found: object) -> None:
    if isinstance(found, Tensor):
        _MADE[found] = path
        if found.grad_fn is not None:  # which what is made of the vectors keeps, and not the tensor
            _notes(found.grad_fn)[_MARK] = path


def is_of_another_thread(node: Node) -> bool:
    """Tell whether a node of a graph is a look-up of another thread."""
    return _MARK in _notes(node)


def _notes(node: Node) -> dict[str, object]:
    return cast("dict[str, object]", node.metadata)  # of which torch's types say that it is a function


def refused_from_other_threads(value: Any) -> Any:
    """Return arguments of an operation in which look-ups of other threads are marked: an output of them is refused."""
    return for_each_tensor(value, _refused) if len(_MADE) else value


def _refused(value: Tensor) -> Tensor:
    if value not in _MADE:
        return value
    return without_rule(
        value,
        f"the model looks up vectors of {_MADE[value]} in another thread, whose operations are not followed; let its "
        "forward do that in its own thread",
    )
