"""Modules that are recurrent networks by the name of their type or of their weights, also those that do not open."""

from __future__ import annotations

from torch import nn

from unrolled.decomposition.opening.recurrent_twin import quantised_kind
from unrolled.user_models.all_modules import all_parameters

__all__ = ["has_recurrent_name", "type_name"]

_NAMES = ("LSTM", "GRU", "RNN", "SRU")
"""How the types of recurrent networks are called."""


def has_recurrent_name(module: nn.Module) -> bool:
    """Tell whether a module is called a recurrent network and holds a matrix, as the weights of one are."""
    if "weight_ih_l0" in dict(module.named_parameters(recurse=False)):
        return True
    kind = type_name(module).upper()
    return any(name in kind for name in _NAMES) and _holds_a_matrix(module)


def type_name(module: nn.Module) -> str:
    """Return the name of a module's type: of a scripted one, of the type it was made of."""
    return str(getattr(module, "original_name", type(module).__name__))


def _holds_a_matrix(module: nn.Module) -> bool:
    """Tell a network from a dropout or a norm of one, which are called RNNDropout and LSTMNorm."""
    quantised = quantised_kind(module) is not None  # its weights are packed, and no parameters
    return quantised or any(weight.dim() > 1 for weight in all_parameters(module).values())
