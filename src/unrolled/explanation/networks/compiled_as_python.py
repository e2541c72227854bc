"""Run what ``torch.compile`` compiled as the Python that it was made of."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from unrolled.user_models.all_modules import all_modules
from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = ["compiled_as_python"]


@contextmanager
def compiled_as_python(model: nn.Module) -> Iterator[None]:
    """Run modules, functions and methods that are compiled as Python, until the end of the block.

    A hook of a module that ``module.compile()`` compiled is compiled with it, and would not see the module's tensors.
    """
    compiled = [part for part in all_modules(model).values() if getattr(part, "_compiled_call_impl", None) is not None]
    with replaced_attributes((part, "_compiled_call_impl", None) for part in compiled), _eager():
        yield


@contextmanager
def _eager() -> Iterator[None]:
    """Let calls of compiled functions run as Python, also of those that a model compiles meanwhile."""
    if not hasattr(torch.compiler, "set_stance"):  # which is of torch 2.6
        yield
        return
    with ExitStack() as stack:

        def force() -> None:
            stack.enter_context(torch.compiler.set_stance("force_eager"))

        if "torch._dynamo" in sys.modules:
            force()
        else:  # loading it takes seconds, which a model that compiles nothing is spared
            stack.enter_context(replaced_attributes([(torch, "compile", _first_call_of(torch.compile, force))]))
        yield


def _first_call_of(function: Callable[..., Any], then: Callable[[], None]) -> Callable[..., Any]:
    """Return a function that calls another one when it was called for the first time."""
    waiting = [then]

    def called(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if waiting:
            waiting.pop()()
        return result

    return called
