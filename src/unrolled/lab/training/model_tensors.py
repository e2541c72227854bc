"""The tensors of a model by name: all of them, those of the model as it was built, and those of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from unrolled.errors import DataError
from unrolled.lab.training.distributed import cpu_copy

__all__ = ["all_tensors", "load_tensors", "plain_tensors"]


def all_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Copy the tensors of a model to the CPU, by name; a tensor with two names has the first one."""
    return {name: cpu_copy(value) for name, value in _unique(model).items()}


def plain_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Copy the tensors of the model that the task builds: a parametrised weight as its value, in evaluation mode."""
    plain = {name: value for name, value in _unique(model).items() if "parametrizations." not in name}
    for prefix, module in model.named_modules():
        if parametrize.is_parametrized(module):
            for name in module.parametrizations:
                plain[f"{prefix}.{name}".lstrip(".")] = getattr(module, name)
    return {name: cpu_copy(value) for name, value in plain.items()}


def load_tensors(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Copy tensors into a model, after checking that they fit it; ``path`` is only named in errors."""
    expected = _unique(model)
    if missing := sorted(expected.keys() - tensors.keys()):
        raise DataError(f"{path}: lacks weights of this model: {', '.join(missing)}")
    if extra := sorted(tensors.keys() - expected.keys()):
        raise DataError(f"{path}: has weights that this model lacks: {', '.join(extra)}")
    for name, value in tensors.items():
        if value.shape != expected[name].shape:
            raise DataError(f"{path}: {name} has shape {tuple(value.shape)}; expected {tuple(expected[name].shape)}")
        if not torch.isfinite(value).all():
            raise DataError(f"{path}: {name} contains NaN or infinity")
    with torch.no_grad():
        for name, value in tensors.items():
            expected[name].copy_(value)


def _unique(model: nn.Module) -> dict[str, Tensor]:
    """Return the state of a model with every tensor once: two names of the same memory are one tensor."""
    state = model.state_dict()
    first: dict[object, str] = {}
    for name, value in state.items():
        first.setdefault((value.data_ptr(), value.shape) if value.numel() else name, name)
    return {name: state[name] for name in first.values()}
