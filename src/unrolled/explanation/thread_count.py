"""How many threads a call computes on: one where its work is small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from unrolled.model_runs.nested_tensors import tensors_in
from unrolled.user_models.all_modules import TABLES, all_modules

__all__ = ["one_thread_if_small"]

_SMALL = 8e9
"""Multiplications up to which one thread is taken: about half a second of one core."""


@contextmanager
def one_thread_if_small(model: nn.Module, arguments: tuple[object, ...], passes: float = 3.0) -> Iterator[None]:
    """Compute on one thread if the work is small, and restore the number of threads.

    The products of a step are short. Where another process holds one of the cores, threads that wait for each other
    after every product make a call many times slower than one thread; where none does, they gain little.

    Args:
        model: Its weights, embeddings aside, are each used once for every position.
        arguments: The model's arguments, which tell how many positions there are.
        passes: How often a weight is used for a position.
    """
    before = torch.get_num_threads()
    if before == 1 or passes * _weights(model) * _positions(arguments) > _SMALL:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _weights(model: nn.Module) -> int:
    """Count the numbers of all weights but those that are looked up."""
    parts = (part for part in all_modules(model).values() if not isinstance(part, TABLES))
    return sum(weight.numel() for part in parts for weight in part.parameters(recurse=False))


def _positions(arguments: object) -> int:
    """Count the tokens or vectors of the largest argument."""
    sizes = (
        each.numel() // max(1, each.shape[-1]) if each.is_floating_point() and each.dim() else each.numel()
        for each in tensors_in(arguments)
    )
    return max(sizes, default=1)
