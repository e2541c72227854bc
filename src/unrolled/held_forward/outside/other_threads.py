"""What other threads make for a model that runs here: no mode of this thread meets their operations.

What another thread makes of value is refused by its graph. A look-up begins one, as what was made before the run does.
Modules that look vectors up are watched in every thread; other operations in what the run hands over
(``handed_over.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, cast

from torch import Tensor, nn
from torch.autograd.graph import Node

from unrolled.held_forward.graph import without_rule
from unrolled.held_forward.operations.operands import for_each_tensor
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes
from unrolled.user_models.all_modules import TABLES, all_modules
from unrolled.user_models.this_thread import in_this_thread

__all__ = ["is_of_another_thread", "look_ups_noted", "note_made", "refused_from_other_threads", "was_made"]

_MADE: TensorNotes[str] = TensorNotes()
"""What other threads have made of tokens or of value, with what the model did there."""
_MARK = "unrolled: made in another thread"


@contextmanager
def look_ups_noted(model: nn.Module) -> Iterator[None]:
    """Note what other threads look up in a model; one that only uses the model as well is not disturbed."""
    with ExitStack() as hooks:
        for path, module in all_modules(model).items():
            if isinstance(module, TABLES):
                noted = in_this_thread(lambda *_: None, elsewhere=partial(_note, path))
                hooks.enter_context(module.register_forward_hook(noted))
        yield


def _note(path: str, _module: nn.Module, _given: object, found: object) -> None:
    if isinstance(found, Tensor):
        note_made(found, f"looks up vectors of {path} in another thread")


def note_made(found: Tensor, what: str) -> None:
    """Note what a model does to make a tensor, in words that end with the other thread."""
    _MADE[found] = what
    if found.grad_fn is not None:  # which what is made of the tensor keeps, and not the tensor
        _notes(found.grad_fn)[_MARK] = what


def was_made(value: object) -> bool:
    """Tell whether a tensor is noted as made in another thread."""
    return value in _MADE


def is_of_another_thread(node: Node) -> bool:
    """Tell whether a node of a graph is of what another thread made of tokens."""
    return _MARK in _notes(node)


def _notes(node: Node) -> dict[str, object]:
    return cast("dict[str, object]", node.metadata)  # of which torch's types say that it is a function


def refused_from_other_threads(value: Any) -> Any:
    """Return arguments in which what other threads made is marked: an output of it is refused."""
    return for_each_tensor(value, _refused) if len(_MADE) else value


def _refused(value: Tensor) -> Tensor:
    if value not in _MADE:
        return value
    return without_rule(
        value,
        f"the model {_MADE[value]}, whose operations are not followed; let its forward do that in its own thread",
    )
