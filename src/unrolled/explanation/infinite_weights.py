"""Name the weight that is NaN or infinite in an error about such numbers: a training that diverged leaves one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from unrolled.errors import NonFiniteError
from unrolled.explanation.held_sum import InfiniteHeldRunError
from unrolled.linalg.finite_sum import has_finite_sum
from unrolled.user_models.all_modules import all_parameters

__all__ = ["find_infinite_weight", "infinite_weights_named"]


def find_infinite_weight(model: nn.Module) -> str | None:
    """Return the name of the first weight of a model that holds NaN or infinity; None if there is none."""
    return next((name for name, weight in all_parameters(model).items() if not _is_finite(weight.detach())), None)


@contextmanager
def infinite_weights_named(model: nn.Module) -> Iterator[None]:
    """Name the first weight that holds NaN or infinity in an error about NaN or infinite numbers of the block."""
    try:
        yield
    except NonFiniteError as error:
        name = find_infinite_weight(model)
        if name is None or _is_named(name, str(error)):
            raise
        raise NonFiniteError(f"{error}; the weights {name} hold NaN or infinity") from error
    except InfiniteHeldRunError as error:  # zero times NaN is NaN, also where the target reads no such row
        name = find_infinite_weight(model)
        if name is None:
            raise
        raise NonFiniteError(f"weights {name} hold NaN or infinity; expected finite numbers") from error


def _is_named(name: str, message: str) -> bool:
    """Whether an error names a weight already; the error of a network leaves out the network's path."""
    return any(re.search(rf"\bweights {re.escape(each)}\b", message) for each in (name, name.rpartition(".")[2]))


def _is_finite(weight: Tensor) -> bool:
    # torch tells of no sparse tensor which of its numbers are finite
    return has_finite_sum(weight) or (weight.layout == torch.strided and bool(torch.isfinite(weight).all()))
