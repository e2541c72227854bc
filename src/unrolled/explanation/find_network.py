"""Find the recurrent networks inside a model."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from unrolled.cells.recurrent import Recurrent
from unrolled.errors import UnknownNameError, UsageError

__all__ = ["Named", "find_networks"]

Named = str | nn.Module | Sequence[str | nn.Module] | None
"""A network's path inside the model, the module itself, or several of them; None for all."""

RECURRENT_MODULES = (nn.RNNBase, nn.RNNCellBase, Recurrent)
"""Modules that are recurrent networks by their class."""


def find_networks(model: nn.Module, rnn: Named = None) -> dict[str, bool]:
    """Return the paths of all recurrent networks of a model, and for each whether it is to be opened.

    Raises:
        UsageError: If the model has none, or ``rnn`` names none of them.
        UnknownNameError: If there is no module at a path.
    """
    modules = dict(model.named_modules())
    found = [path for path, module in modules.items() if isinstance(module, RECURRENT_MODULES)]
    if rnn is None:
        if not found:
            raise UsageError(
                f"no recurrent network in {type(model).__name__}; expected a torch.nn.RNN, GRU, LSTM or a cell of "
                "these, or one of unrolled.cells.recurrent, among its modules; unrolled.account opens any other model"
            )
        return dict.fromkeys(found, True)
    several = list(rnn) if isinstance(rnn, list | tuple) else [rnn]
    chosen = {path for each in several for path in _named(each, modules, found)}
    return {path: path in chosen for path in found}


def _named(rnn: object, modules: dict[str, nn.Module], found: list[str]) -> list[str]:
    """Return the paths that a name or a module stands for: itself, or the recurrent networks inside it."""
    if isinstance(rnn, nn.Module):
        paths = [path for path, module in modules.items() if module is rnn]
        if not paths:
            raise UsageError(f"rnn is a {type(rnn).__name__} that is no recurrent network inside the model")
    elif isinstance(rnn, str):
        if rnn not in modules:
            raise UnknownNameError("recurrent network", rnn, found)
        paths = [rnn]
    else:
        raise UsageError(f"rnn is a {type(rnn).__name__}; expected the network's path inside the model, or the module")
    inside = [each for path in paths for each in found if each == path or each.startswith(f"{path}." if path else "")]
    if not inside:
        kind = type(modules[paths[0]]).__name__
        raise UsageError(f"rnn is a {kind} that is no recurrent network inside the model")
    return inside
