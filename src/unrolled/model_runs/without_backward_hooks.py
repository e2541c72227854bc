"""Run a model without the backward hooks of its modules, and without those of all modules.

They change no output. torch lays them around a module by an operation that a held run takes for one without value, and
then fails; and they would meet gradients of ours, which are not those of a training. Another thread that trains the
model meanwhile keeps them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import torch
from torch import nn

from unrolled.user_models.all_modules import all_modules
from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = ["without_backward_hooks"]

_HOOKS = ("_backward_hooks", "_backward_pre_hooks")
"""Where a module of torch keeps them."""
_OF_ALL_MODULES = ("_global_backward_hooks", "_global_backward_pre_hooks")
"""Where torch keeps those that ``register_module_full_backward_hook`` lays around every module."""


class _OfOtherThreads(OrderedDict[int, Any]):
    """Hooks that this thread does not see."""

    def __init__(self, *hooks: Any) -> None:
        super().__init__(*hooks)
        self.here = get_ident()

    def __len__(self) -> int:
        return 0 if get_ident() == self.here else super().__len__()

    def values(self) -> Any:
        return () if get_ident() == self.here else super().values()


@contextmanager
def without_backward_hooks(model: nn.Module) -> Iterator[None]:
    """Take the backward hooks off all modules in this thread, until the end of the block."""
    owners: list[tuple[Any, str]] = [(each, name) for each in all_modules(model).values() for name in _HOOKS]
    owners += [(torch.nn.modules.module, name) for name in _OF_ALL_MODULES]
    hooked = [(each, name) for each, name in owners if getattr(each, name, None)]
    with replaced_attributes((each, name, _OfOtherThreads(getattr(each, name))) for each, name in hooked):
        yield
