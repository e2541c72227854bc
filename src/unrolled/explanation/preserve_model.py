"""Borrow a model and its arguments: whatever is done with them, they are given back as they were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.decomposition.eval_mode import eval_mode

__all__ = ["borrowed", "copied"]


@contextmanager
def borrowed(model: nn.Module) -> Iterator[None]:
    """Put every module into evaluation mode, and give each back with the mode, attributes and buffers that it had.

    A model may keep something of its last call, such as a state to go on from; what it kept in between is forgotten.

    Args:
        model: the module.

    Yields:
        Nothing.
    """
    spaces = [space for module in model.modules() for space in (vars(module), module._buffers)]
    kept = [(space, dict(space)) for space in spaces if type(space) is dict]  # a scripted module has its own kind
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        with eval_mode(model):
            yield
    finally:
        with torch.no_grad():
            for buffer, was in buffers:
                if not torch.equal(buffer, was):
                    buffer.copy_(was)
        for space, before in kept:
            for name in [name for name in space if name not in before]:
                del space[name]
            space.update(before)


def copied(value: object) -> Any:
    """Copy the tensors among a model's arguments or results.

    A model may work in place; and what was made in inference mode is not to be touched by what is differentiated.

    Args:
        value: a tensor, a packed sequence, a tuple, list or dictionary of such, or anything else.

    Returns:
        The same with every tensor copied; anything else as it is.
    """
    if isinstance(value, Tensor):
        return value.detach().clone()
    if type(value) is PackedSequence:
        return PackedSequence(*map(copied, value))
    if type(value) is tuple or type(value) is list:
        return type(value)(map(copied, value))
    if type(value) is dict:
        return {key: copied(item) for key, item in cast("Mapping[Any, object]", value).items()}
    return value
