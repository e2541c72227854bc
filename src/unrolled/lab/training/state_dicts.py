"""The weights of a model as a dictionary: each tensor once, in plain form, and back, with every mismatch named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from unrolled.errors import DataError
from unrolled.lab.training.distributed import own

__all__ = ["all_tensors", "load_tensors", "plain_tensors"]


def all_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Copy the tensors of a model, as it is trained."""
    return {name: own(value) for name, value in _unique(model).items()}


def plain_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Copy the tensors of a model as they are used: a normalised weight as the weight that came of it."""
    plain = {name: value for name, value in _unique(model).items() if "parametrizations." not in name}
    for prefix, module in model.named_modules():
        if parametrize.is_parametrized(module):
            for name in module.parametrizations:
                plain[f"{prefix}.{name}".lstrip(".")] = getattr(module, name)
    return {name: own(value) for name, value in plain.items()}


def load_tensors(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Give a model its weights, once they are known to be those of this model."""
    expected = _unique(model)
    if missing := sorted(expected.keys() - tensors.keys()):
        raise DataError(f"{path}: lacks {', '.join(missing)}; expected all weights of this model")
    if extra := sorted(tensors.keys() - expected.keys()):
        raise DataError(f"{path}: unknown weights {', '.join(extra)}; expected those of this model")
    for name, value in tensors.items():
        if value.shape != expected[name].shape:
            raise DataError(f"{path}: {name} has shape {tuple(value.shape)}; expected {tuple(expected[name].shape)}")
        if not torch.isfinite(value).all():
            raise DataError(f"{path}: {name} holds NaN or infinity; expected finite numbers")
    with torch.no_grad():
        for name, value in tensors.items():
            expected[name].copy_(value)


def _unique(model: nn.Module) -> dict[str, Tensor]:
    """The state of a model without second names: two tensors in one place are one."""
    state = model.state_dict()
    first: dict[object, str] = {}
    for name, value in state.items():
        first.setdefault((value.data_ptr(), value.shape) if value.numel() else name, name)
    return {name: state[name] for name in first.values()}
