"""Subclasses of torch's recurrent networks and cells that have a forward of their own.

Such a forward may run torch's kernel, as most do by ``super().forward``, or compute the steps by itself. In the second
case what the class is called says nothing of what it computes: it is a network or a cell of the user's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from unrolled.decomposition.recurrent_rules import RECURRENT
from unrolled.held_forward.all_modules import all_modules
from unrolled.held_forward.operation_mode import OperationMode
from unrolled.held_forward.operation_names import name_of
from unrolled.held_forward.replaced_attributes import replaced_attributes

__all__ = ["has_own_forward", "runs_without_kernel"]

OF_TORCH = (nn.RNNBase, nn.RNNCellBase)


def has_own_forward(module: nn.Module) -> bool:
    """Tell whether a network or a cell by its class runs another forward than torch's."""
    if not isinstance(module, OF_TORCH):
        return False
    return "forward" in vars(module) or not str(type(module).forward.__module__).startswith("torch.")


def runs_without_kernel(model: nn.Module, run: Callable[[], object]) -> frozenset[str]:
    """Return the paths of networks and cells by their class whose forward was called in a run, and ran no kernel."""
    modules = all_modules(model)
    if not any(map(has_own_forward, modules.values())):
        return frozenset()
    kernels = _Kernels()
    with kernels.noted(modules), kernels:
        run()
    return frozenset(path for path in kernels.called - kernels.ran if has_own_forward(modules[path]))


class _Kernels(OperationMode):
    """Notes which networks and cells are called, and which of them run a kernel of torch's."""

    def __init__(self) -> None:
        super().__init__()
        self.called: set[str] = set()
        self.ran: set[str] = set()
        self._running: list[str] = []

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run an operation as it is; a kernel is that of the innermost network."""
        if self._running and name_of(func).name in RECURRENT:
            self.ran.add(self._running[-1])
        return super().run_operation(func, args, options)

    @contextmanager
    def noted(self, modules: dict[str, nn.Module]) -> Iterator[None]:
        """Note the calls of networks and cells until the end of the block."""
        networks = ((path, module) for path, module in modules.items() if isinstance(module, OF_TORCH))
        with replaced_attributes((module, "forward", self._noted(path, module)) for path, module in networks):
            yield

    def _noted(self, path: str, module: nn.Module) -> Callable[..., Any]:
        forward = module.forward

        def noted(*args: Any, **kwargs: Any) -> Any:
            self.called.add(path)
            self._running.append(path)
            try:
                return forward(*args, **kwargs)
            finally:
                self._running.pop()

        return noted
