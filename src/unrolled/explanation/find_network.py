"""Which part of a model is the recurrent network."""

from __future__ import annotations

from torch import nn

from unrolled.decomposition.open_network import Network
from unrolled.errors import UnknownNameError, UsageError

__all__ = ["find_network"]


def find_network(model: nn.Module, rnn: str | nn.Module | None = None) -> tuple[str, Network]:
    """Find the recurrent network inside a model.

    Args:
        model: any module.
        rnn: its path inside the model (``"encoder.rnn"``), or the module itself; needed when there are
            several.

    Returns:
        The path, empty for the model itself, and the module.

    Raises:
        UnknownNameError: when no recurrent network has that path.
        UsageError: when there is none, or there are several and none is named.
    """
    found = {path: module for path, module in model.named_modules() if isinstance(module, Network)}
    if isinstance(rnn, nn.Module):
        for path, module in found.items():
            if module is rnn:
                return path, module
        raise UsageError(f"the {type(rnn).__name__} that came is no recurrent network inside the model")
    if isinstance(rnn, str):
        if rnn not in found:
            raise UnknownNameError("recurrent network", rnn, found)
        return rnn, found[rnn]
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
    return next(iter(found.items()))
