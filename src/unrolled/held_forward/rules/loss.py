"""Losses, where an output is one: the surprisal of a text, the error of a reconstruction."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.held_forward.graph import without_rule
from unrolled.held_forward.mode import Held, rule
from unrolled.held_forward.rules.activation import from_zero

__all__: list[str] = []


@rule("cross_entropy_loss")
def cross_entropy(call: Held) -> Tensor:
    """Pick the logarithms of the probabilities of classes."""
    logits, classes, weight, reduction, ignored, smoothing = call.args
    if smoothing or classes.is_floating_point():
        message = (
            "cross_entropy with label_smoothing or with probabilities as its target has no rule; use log_softmax and a "
            "sum over the classes"
        )
        return without_rule(call.held(), message)
    with call.mode:
        logarithms = torch.log_softmax(logits, dim=min(1, logits.dim() - 1))
        picked: Tensor = torch._C._nn.nll_loss_nd(logarithms, classes, weight, reduction, ignored)
    return picked


@rule("mse_loss", "l1_loss")
def of_a_difference(call: Held) -> Tensor:
    """φ(a - b), whose line begins at zero; each difference, their mean or their sum."""
    a, b, reduction = call.args
    with call.mode:
        difference = a - b
    risen, _ = from_zero(difference, lambda z: call.function(z, torch.zeros_like(z), 0))
    return risen if reduction == 0 else risen.mean() if reduction == 1 else risen.sum()
