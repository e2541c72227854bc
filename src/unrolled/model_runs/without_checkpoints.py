"""Run a model without the checkpoints of ``torch.utils.checkpoint``, which would compute its functions a second time.

A checkpoint keeps no results of its function and computes them again when a gradient is asked for. The second
computation does not follow the rules of a held run. The function itself gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from types import SimpleNamespace
from typing import Any

import torch.utils.checkpoint as checkpoints

from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = ["without_checkpoints"]

_NAMES = ("_checkpoint_without_reentrant_generator_impl", "_checkpoint_without_reentrant_generator")
"""The first is that of torch 2.15."""
_REENTRANT, _OTHER = "CheckpointFunction", next(name for name in _NAMES if hasattr(checkpoints, name))
"""What ``torch.utils.checkpoint.checkpoint`` looks up in its module, for both values of ``use_reentrant``."""


@contextmanager
def without_checkpoints() -> Iterator[None]:
    """Let checkpoints call their functions directly in this thread, until the end of the block.

    Other threads compute their checkpoints as before.
    """
    here = get_ident()
    reentrant, other = getattr(checkpoints, _REENTRANT), getattr(checkpoints, _OTHER)

    def apply(function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        return function(*args) if get_ident() == here else reentrant.apply(function, preserve, *args)

    def around(*args: Any, **kwargs: Any) -> Iterator[None]:
        return _nothing() if get_ident() == here else other(*args, **kwargs)

    stand_ins = {_REENTRANT: SimpleNamespace(apply=apply), _OTHER: around}
    with replaced_attributes((checkpoints, name, each) for name, each in stand_ins.items()):
        yield


def _nothing() -> Iterator[None]:
    """Do nothing before and after the function, which ``checkpoint`` itself calls."""
    yield
