"""Losses, where an output is one: the surprisal of a text, the error of a reconstruction."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.held_forward.graph import without_rule
from unrolled.held_forward.mode import HeldCall, rule
from unrolled.held_forward.rules.activation import from_zero

__all__: list[str] = []


@rule("cross_entropy_loss")
def cross_entropy(call: HeldCall) -> Tensor:
    """Pick the logarithms of the probabilities of classes, or weigh them by the shares that classes should have."""
    logits, classes, weight, reduction, ignored, smoothing = call.args
    axis = min(1, logits.dim() - 1)
    with call.mode:
        logarithms = torch.log_softmax(logits, dim=axis)
        if classes.is_floating_point():
            shares = classes * (1 - smoothing) + smoothing / logits.shape[axis] if smoothing else classes
            return _reduced(-_over_classes(shares * logarithms, weight, axis), reduction)
        picked: Tensor = torch._C._nn.nll_loss_nd(logarithms, classes, weight, reduction, ignored)
        if not smoothing:
            return picked
        read = classes != ignored
        losses = _reduced(-_over_classes(logarithms, weight, axis).masked_fill(~read, 0.0), 2 if reduction else 0)
        if reduction == 1:  # torch divides by the weights of the classes that are picked
            losses = losses / (read.sum() if weight is None else weight[classes[read]].sum())
        return (1 - smoothing) * picked + smoothing / logits.shape[axis] * losses


def _over_classes(values: Tensor, weight: Tensor | None, axis: int) -> Tensor:
    """Sum over the classes, each times its weight."""
    if weight is not None:
        values = values * weight.view(-1, *[1] * (values.dim() - 1 - axis))
    return values.sum(axis)


@rule("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
def of_a_difference(call: HeldCall) -> Tensor:
    """φ(a - b), whose line begins at zero."""
    a, b, reduction, *scale = call.args
    with call.mode:
        difference = a - b
    risen, _ = from_zero(call, difference, lambda z: call.function(z, torch.zeros_like(z), 0, *scale))
    return _reduced(risen, reduction)


@rule("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(call: HeldCall) -> Tensor:
    """-y log σ(z) - (1 - y) log σ(-z), where log σ(-z) = log σ(z) - z."""
    logits, classes, weight, positive, reduction = call.args
    with call.mode:
        of_both = 1.0 if positive is None else 1 + (positive - 1) * classes
        losses = (1 - classes) * logits - of_both * torch.nn.functional.logsigmoid(logits)
        return _reduced(losses if weight is None else losses * weight, reduction)


@rule("binary_cross_entropy")
def binary_cross_entropy(call: HeldCall) -> Tensor:
    """-y log p - (1 - y) log (1 - p); torch bounds the logarithms at -100."""
    share, classes, weight, reduction = call.args
    with call.mode:
        losses = -classes * share.log().clamp(min=-100) - (1 - classes) * (1 - share).log().clamp(min=-100)
        return _reduced(losses if weight is None else losses * weight, reduction)


@rule("kl_div")
def kl_div(call: HeldCall) -> Tensor:
    """P (log P - x), where x is the logarithm of the other distribution."""
    logarithm, target, reduction, target_is_logarithm = call.bind("self", "target", "reduction", "log_target")
    with call.mode:
        own = target.exp() * target if target_is_logarithm else torch.special.xlogy(target, target)
        return _reduced(own - (target.exp() if target_is_logarithm else target) * logarithm, reduction)


@rule("margin_ranking_loss")
def margin_ranking(call: HeldCall) -> Tensor:
    """relu(m - y (a - b))."""
    a, b, order, margin, reduction = call.args
    with call.mode:
        return _reduced(torch.relu(margin - order * (a - b)), reduction)


@rule("hinge_embedding_loss")
def hinge_embedding(call: HeldCall) -> Tensor:
    """Take x where y is 1, and relu(m - x) where it is -1."""
    x, order, margin, reduction = call.args
    with call.mode:
        return _reduced(torch.where(order > 0, x, torch.relu(margin - x)), reduction)


@rule("cosine_embedding_loss")
def cosine_embedding(call: HeldCall) -> Tensor:
    """Take 1 - cos where y is 1, and relu(cos - m) where it is -1."""
    a, b, order, margin, reduction = call.args
    norms = ((each.detach().square().sum(-1) + 1e-12).sqrt() for each in (a, b))
    with call.mode:
        cosine = (a * b).sum(-1) / next(norms) / next(norms)
        return _reduced(torch.where(order > 0, 1 - cosine, torch.relu(cosine - margin)), reduction)


@rule("triplet_margin_loss")
def triplet_margin(call: HeldCall) -> Tensor:
    """relu(m + d(anchor, positive) - d(anchor, negative)); with a swap, less the smaller distance of the negative."""
    anchor, positive, negative, margin, p, eps, swap, reduction = call.args
    with call.mode:
        near, far = (torch.pairwise_distance(anchor, each, p, eps) for each in (positive, negative))
        if swap:
            far = torch.minimum(far, torch.pairwise_distance(positive, negative, p, eps))
        return _reduced(torch.relu(margin + near - far), reduction)


@rule("multi_margin_loss")
def multi_margin(call: HeldCall) -> Tensor:
    """The mean of relu(m - x_y + x_j)^p over the classes j; for j = y it is 0."""
    x, classes, p, margin, weight, reduction = call.args
    wide = x if x.dim() == 2 else x[None]
    place = classes.reshape(-1, 1)
    others = torch.ones_like(wide.detach()).scatter(1, place, 0.0)
    scale = 1.0 if weight is None else weight[place]
    with call.mode:
        losses = (torch.relu(margin - wide.gather(1, place) + wide) ** p * others * scale).mean(1)
        return _reduced(losses if x.dim() == 2 else losses[0], reduction)


@rule("soft_margin_loss")
def soft_margin(call: HeldCall) -> Tensor:
    """Log (1 + exp(-y x))."""
    x, order, reduction = call.args
    with call.mode:
        return _reduced(torch.nn.functional.softplus(-order * x), reduction)


@rule("poisson_nll_loss")
def poisson_nll(call: HeldCall) -> Tensor:
    """λ - n log λ, where x is λ or its logarithm; with Stirling's log n! where n is above one."""
    x, count, is_logarithm, full, eps, reduction = call.args
    with call.mode:
        losses = x.exp() - count * x if is_logarithm else x - count * torch.log(x + eps)
        if full:
            stirling = count * count.log() - count + 0.5 * torch.log(2 * torch.pi * count)
            losses = losses + stirling.masked_fill(count <= 1, 0.0)
        return _reduced(losses, reduction)


@rule("ctc_loss")
def ctc(call: HeldCall) -> Tensor:
    """Refuse an output that is made of it: it sums the probabilities of all alignments."""
    message = (
        "ctc_loss has no rule, since it sums over all alignments; account for what it reads, the score of a label at a "
        "frame: target=lambda out: out[...]"
    )
    return without_rule(call.held(), message)


def _reduced(losses: Tensor, reduction: int) -> Tensor:
    """Each loss, their mean or their sum, by torch's number for it."""
    return losses if reduction == 0 else losses.mean() if reduction == 1 else losses.sum()
