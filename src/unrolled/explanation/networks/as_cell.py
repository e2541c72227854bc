"""The function :func:`unrolled.as_cell`: a user names a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import nn

from unrolled.errors import UsageError, kind_of

__all__ = ["CellAdapter", "as_cell"]


@dataclass(frozen=True)
class CellAdapter:
    """A step that a user named, for ``rnn=``; see :func:`as_cell`."""

    module: str | nn.Module
    method: str
    state: tuple[str, ...]


def as_cell(module: str | nn.Module, *, method: str = "forward", state: str | Sequence[str] = ()) -> CellAdapter:
    """Say which module, or method of one, is a recurrent step, where :func:`unrolled.explain` does not find it itself.

    It finds a step that receives what it returned at an earlier call, or whose state is called ``state``, ``hidden``,
    ``h`` or ``c``. What a step returns is (any of) its output and its next state, as tensors with the batch first.

    Args:
        module: The module, or its path inside the model.
        method: The method that the model calls once a step.
        state: The names of the method's parameters that are the state; without it they are found.

    Returns:
        What ``rnn=`` of :func:`unrolled.explain` takes.

    Raises:
        UsageError: If an argument is of another type.

    Example:
        >>> import torch, unrolled
        >>> class Leaky(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.w, self.u = torch.nn.Linear(3, 4), torch.nn.Linear(4, 4)
        ...     def advance(self, x, level):
        ...         return 0.9 * level + 0.1 * torch.tanh(self.w(x) + self.u(level))
        >>> class Model(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.leaky, self.head = Leaky(), torch.nn.Linear(4, 2)
        ...     def forward(self, xs):
        ...         level = torch.zeros(len(xs), 4)
        ...         for x in xs.unbind(1):
        ...             level = self.leaky.advance(x, level).clamp(-1, 1)
        ...         return self.head(level)
        >>> cell = unrolled.as_cell("leaky", method="advance", state="level")
        >>> found = unrolled.explain(Model(), torch.randn(1, 5, 3), target=1, rnn=cell)
        >>> len(found)
        5
    """
    if not isinstance(module, str | nn.Module):
        raise UsageError(f"the cell is {kind_of(module)}; expected a module, or its path inside the model")
    names = (state,) if isinstance(state, str) else tuple(state) if isinstance(state, Iterable) else (state,)
    if not isinstance(method, str) or not all(isinstance(each, str) for each in names):
        raise UsageError("method and state are names: a method of the module, and parameters of that method")
    return CellAdapter(module, method, names)
