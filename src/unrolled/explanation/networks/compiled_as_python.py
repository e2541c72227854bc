"""Run what ``torch.compile`` compiled as the Python that it was made of."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import nn

from unrolled.held_forward.replaced_attributes import replaced_attributes

__all__ = ["compiled_as_python"]


@contextmanager
def compiled_as_python(model: nn.Module) -> Iterator[None]:
    """Run modules, functions and methods that are compiled as Python, until the end of the block.

    A hook of a module that ``module.compile()`` compiled is compiled with it, and would not see the module's tensors.
    """
    compiled = [part for part in model.modules() if getattr(part, "_compiled_call_impl", None) is not None]
    with replaced_attributes((part, "_compiled_call_impl", None) for part in compiled), _eager():
        yield


def _eager() -> AbstractContextManager[object]:
    """Let calls of compiled functions run as Python."""
    if "torch._dynamo" not in sys.modules or not hasattr(torch.compiler, "set_stance"):  # the second is of torch 2.6
        return nullcontext()
    stance: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance
