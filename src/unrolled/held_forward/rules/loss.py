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


@rule("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
def of_a_difference(call: Held) -> Tensor:
    """φ(a - b), whose line begins at zero."""
    a, b, reduction, *scale = call.args
    with call.mode:
        difference = a - b
    risen, _ = from_zero(difference, lambda z: call.function(z, torch.zeros_like(z), 0, *scale))
    return _reduced(risen, reduction)


@rule("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(call: Held) -> Tensor:
    """-y log σ(z) - (1 - y) log σ(-z), where log σ(-z) = log σ(z) - z."""
    logits, classes, weight, positive, reduction = call.args
    with call.mode:
        of_both = 1.0 if positive is None else 1 + (positive - 1) * classes
        losses = (1 - classes) * logits - of_both * torch.nn.functional.logsigmoid(logits)
        return _reduced(losses if weight is None else losses * weight, reduction)


@rule("binary_cross_entropy")
def binary_cross_entropy(call: Held) -> Tensor:
    """-y log p - (1 - y) log (1 - p); torch bounds the logarithms at -100."""
    share, classes, weight, reduction = call.args
    with call.mode:
        losses = -classes * share.log().clamp(min=-100) - (1 - classes) * (1 - share).log().clamp(min=-100)
        return _reduced(losses if weight is None else losses * weight, reduction)


@rule("kl_div")
def kl_div(call: Held) -> Tensor:
    """P (log P - x), where x is the logarithm of the other distribution."""
    logarithm, target, reduction, target_is_logarithm = call.bind("self", "target", "reduction", "log_target")
    with call.mode:
        own = target.exp() * target if target_is_logarithm else torch.special.xlogy(target, target)
        return _reduced(own - (target.exp() if target_is_logarithm else target) * logarithm, reduction)


def _reduced(losses: Tensor, reduction: int) -> Tensor:
    """Each loss, their mean or their sum, by torch's number for it."""
    return losses if reduction == 0 else losses.mean() if reduction == 1 else losses.sum()
