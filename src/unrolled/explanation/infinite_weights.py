"""An error that a number is NaN or infinite names the weight that is: a training that diverged leaves one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from unrolled.errors import NonFiniteError
from unrolled.held_forward.all_modules import all_parameters

__all__ = ["infinite_weights_named"]


@contextmanager
def infinite_weights_named(model: nn.Module) -> Iterator[None]:
    """Add the first weight of a model that holds NaN or infinity to the error that a number of its run is."""
    try:
        yield
    except NonFiniteError as error:
        weights = all_parameters(model).items()
        name = next((name for name, weight in weights if not bool(torch.isfinite(weight).all())), None)
        if name is None or name.rpartition(".")[2] in str(error):
            raise
        raise NonFiniteError(f"{error}; the weights {name} hold NaN or infinity") from error
