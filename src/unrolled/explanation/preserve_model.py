"""Leave a model and its arguments as they were, whatever is run in between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.decomposition.eval_mode import ONE_THREAD, eval_mode

__all__ = ["copy_tensors", "preserved", "without_gradients"]


@contextmanager
def preserved(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode, and restore every module's mode, attributes and buffers at the end.

    A model may store its last state, to go on from there; such a state is restored as well.
    """
    with ONE_THREAD:
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


@contextmanager
def without_gradients(model: nn.Module) -> Iterator[None]:
    """Let no parameter require a gradient: in a held forward that means that it carries value."""
    flags = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        for parameter, _ in flags:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter, flag in flags:
            parameter.requires_grad_(flag)


def copy_tensors(value: object) -> Any:
    """Copy the tensors in a model's arguments or results; tuples, lists and dictionaries are searched.

    A model may work in place; and autograd refuses tensors that were made in inference mode.
    """
    if isinstance(value, Tensor):
        return value.detach().clone()
    if type(value) is PackedSequence:
        return PackedSequence(*map(copy_tensors, value))
    if type(value) is tuple or type(value) is list:
        return type(value)(map(copy_tensors, value))
    if type(value) is dict:
        return {key: copy_tensors(item) for key, item in cast("Mapping[Any, object]", value).items()}
    return value
