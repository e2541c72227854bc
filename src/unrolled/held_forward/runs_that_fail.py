"""Held runs of a model that fail where its own run does not: once more on copies, or refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from unrolled.errors import UnsupportedOperationError, first_line

__all__ = ["failures_refused", "with_factors_as_they_were"]

T = TypeVar("T")


def with_factors_as_they_were(run: Callable[[], T]) -> T:
    """Run what records a graph and differentiates it; once more, on copies, if the model changed a factor in place.

    A scan that works in place changes the factors of products that it has computed. Their gradients need them as they
    were then. To copy every factor costs time and memory, so it is done only where autograd finds one that changed.

    Raises:
        UnsupportedOperationError: If a transform of torch.func differentiates the change, which takes no copies.
    """
    try:
        return run()
    except RuntimeError as error:
        if "modified by an inplace operation" not in str(error):
            raise
        changed = error
    try:
        with torch.autograd.graph.saved_tensors_hooks(lambda factor: factor.detach().clone(), lambda copy: copy):
            return run()
    except RuntimeError as error:
        if "saved tensor hooks" not in str(error):
            raise
    raise UnsupportedOperationError(
        "the model changes a tensor in place that an operation before needs as it was, as a factor or for a slope; "
        "change a clone() of it, or use the operation without the underscore"
    ) from changed


@contextmanager
def failures_refused() -> Iterator[None]:
    """Refuse a model that runs by itself and fails in a held run, as some kernels do that take no gradient.

    Raises:
        UnsupportedOperationError: If it says that something is not implemented; any other error is let through.
    """
    try:
        yield
    except NotImplementedError as error:
        said = first_line(error).rstrip(".")
        raise UnsupportedOperationError(
            f"the model runs by itself, but fails where its operations are followed: {said}; compute that step with "
            "other operations of torch, or explain a part of the model"
        ) from error
