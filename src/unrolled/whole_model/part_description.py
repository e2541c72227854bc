"""A part of a model in words: its type, what it receives, how many n-grams it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.explanation.networks.recurrent_names import type_name
from unrolled.model_runs.nested_tensors import leaves

__all__ = ["CallArguments", "module_kind", "ngrams_of", "reads_of"]

CallArguments = tuple[tuple[Any, ...], Mapping[str, Any]]
"""The positional and the keyword arguments of one call."""


def module_kind(module: nn.Module) -> str:
    """Name a module's type, with layers and directions where it has several."""
    layers, both = getattr(module, "num_layers", 1), getattr(module, "bidirectional", False)
    parts = [type_name(module)]
    if isinstance(layers, int) and layers > 1:
        parts.append(f"{layers} layers")
    if both:
        parts.append("both directions")
    return ", ".join(parts)


def reads_of(calls: Sequence[CallArguments]) -> str:
    """Describe the first tensor of the first call."""
    if not calls:
        return "nothing"
    for value in _values(calls[0]):
        if isinstance(value, PackedSequence):
            return (
                f"packed, {len(value.batch_sizes)} steps, {len(value.data)} vectors of {value.data.shape[-1]} numbers"
            )
        if isinstance(value, Tensor):
            return str(tuple(value.shape))
    inner = next((tensor for value in _values(calls[0]) for _, tensor in leaves(value)), None)  # as in a dictionary
    return "no tensor" if inner is None else str(tuple(inner.shape))


def ngrams_of(module: nn.Module, calls: Sequence[CallArguments]) -> str:
    """Say how many n-grams a module's only call has; empty where it has several calls, or reads no sequence."""
    if len(calls) != 1:
        return ""
    value = next((each for each in _values(calls[0]) if isinstance(each, Tensor)), None)
    if value is None or value.dim() != 3:
        return ""
    time = value.shape[1 if getattr(module, "batch_first", False) else 0]
    return f"{time * (time + 1) // 2:,} n-grams a direction"


def _values(call: CallArguments) -> list[Any]:
    positional, named = call
    return [*positional, *named.values()]
