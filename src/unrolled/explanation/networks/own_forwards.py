"""Subclasses of torch's recurrent networks and cells that have a forward of their own.

Most of these run torch's kernel inside, as by ``super().forward``, and are opened at that kernel. What runs none is a
step of its user's own, or holds some, whatever its class is called.
"""

from __future__ import annotations

from collections.abc import Collection

from torch import nn

from unrolled.errors import UsageError

__all__ = ["NoKernelError", "has_own_forward"]


def has_own_forward(module: nn.Module) -> bool:
    """Tell whether a network or a cell by its class runs another forward than torch's."""
    own = "forward" in vars(module) or not type(module).forward.__module__.startswith("torch.")
    return own and isinstance(module, nn.RNNBase | nn.RNNCellBase)


class NoKernelError(UsageError):
    """Networks or cells by their class have forwards of their own that run no kernel of torch's."""

    def __init__(self, paths: Collection[str]) -> None:
        super().__init__(f"{', '.join(paths)}: the forward computes its steps itself, otherwise than torch.nn")
        self.paths = frozenset(paths)
