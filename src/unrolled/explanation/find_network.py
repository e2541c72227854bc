"""Find the recurrent network inside a model."""

from __future__ import annotations

from torch import nn

from unrolled.decomposition.open_network import Network
from unrolled.errors import UnknownNameError, UsageError

__all__ = ["find_network"]


def find_network(model: nn.Module, rnn: str | nn.Module | None = None) -> Network:
    """Return the recurrent network of a model: its only one, or the one that a path or the module itself names."""
    found = {path: module for path, module in model.named_modules() if isinstance(module, Network)}
    if isinstance(rnn, nn.Module):
        for module in found.values():
            if module is rnn:
                return module
        raise UsageError(f"rnn is a {type(rnn).__name__} that is no recurrent network inside the model")
    if isinstance(rnn, str):
        if rnn not in found:
            raise UnknownNameError("recurrent network", rnn, found)
        return found[rnn]
    if rnn is not None:
        raise UsageError(f"rnn is a {type(rnn).__name__}; expected the network's path inside the model, or the module")
    if not found:
        raise UsageError(
            f"no recurrent network in {type(model).__name__}; expected a torch.nn.RNN, GRU or LSTM, "
            "or one of unrolled.cells.recurrent, among its modules"
        )
    if len(found) > 1:
        raise UsageError(
            f"{len(found)} recurrent networks in {type(model).__name__}; name one: "
            + ", ".join(f"rnn={path!r}" for path in found)
        )
    return next(iter(found.values()))
