"""Whether a model's output depends on numbers of its arguments by another way than through its networks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.decomposition.nested_tensors import copy_tensors, tensors_in
from unrolled.decomposition.preserve_model import preserved
from unrolled.held_forward.this_thread import in_this_thread

__all__ = ["reads_past"]


def reads_past(
    model: nn.Module,
    networks: Collection[nn.Module],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    seed: int | None,
) -> bool:
    """Tell by gradients whether numbers reach the output past these networks; True also where gradients do not tell."""
    given = copy_tensors((args, dict(kwargs)))
    numbers = [each.requires_grad_() for each in tensors_in(given) if each.is_floating_point() and each.is_leaf]
    if not numbers:
        return False
    cut = in_this_thread(lambda _module, _inputs, output: copy_tensors(output))
    hooks = [network.register_forward_hook(cut) for network in networks]
    try:
        with preserved(model, seed), torch.enable_grad():
            output = model(*given[0], **given[1])
        results = [each.sum() for each in tensors_in(output) if each.requires_grad and each.is_floating_point()]
        if not results:
            return False
        total: Tensor = torch.stack([each.to(results[0]) for each in results]).sum()
        gradients: tuple[Any, ...] = torch.autograd.grad(total, numbers, allow_unused=True)
    except Exception:  # a model may fail in any way where its arguments are differentiated
        return True
    finally:
        for hook in hooks:
            hook.remove()
    return any(each is not None and bool(each.any()) for each in gradients)
