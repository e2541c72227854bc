"""torch's optimisers without its compiler, which they load before their first step and which takes over a second.

torch wraps their methods so that ``torch.compile`` leaves them alone. Nothing here compiles an optimiser, so what is
below the wrappers does the same; a class that torch wraps no more is as it was.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import torch

__all__ = ["without_compiler"]

_WRAPPED = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
Kind = TypeVar("Kind", bound=torch.optim.Optimizer)


def without_compiler(kind: type[Kind]) -> type[Kind]:
    """Derive an optimiser that does the same and does not load torch's compiler."""
    raw = inspect.unwrap(kind.step)

    @torch.no_grad()
    def step(self: torch.optim.Optimizer, closure: Callable[[], Any] | None = None) -> Any:
        return raw(self, closure)

    methods = {name: inspect.unwrap(getattr(kind, name)) for name in _WRAPPED}
    return type(kind.__name__, (kind,), {**methods, "step": step})
