r"""The cross-entropy of a linear softmax layer, without all its logits at once.

With Z = H Eᵀ + b, P the softmax of its rows and Y the targets, one row each,

.. math:: L = -\sum_n \log P_{n y_n}, \qquad δZ = P - Y, \qquad δH = δZ\,E, \quad δE = δZ^\top H, \quad δb = δZ^\top 1

A vocabulary of ten thousand words makes Z the largest tensor of a language model by far, and most of the time that
is not spent in its three products goes into reading and writing it. So it is made in blocks of rows that stay in the
cache, turned into δZ in place and used up; the gradients are known when the loss is. :func:`softmax_loss_plain` is
the same in two lines, and judges it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from unrolled.lab.data.vocabulary import PADDING

__all__ = ["softmax_loss", "softmax_loss_reference"]

_BLOCK = 2**22  # logits
_ALIGNMENT = 16  # a row of another length, in floats, makes the first product half as fast


def softmax_loss_reference(features: Tensor, targets: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute the cross-entropy from all logits.

    Args:
        features: H, shape (predictions, size).
        targets: shape (predictions,), int64; ``PADDING`` costs nothing.
        weight: E, shape (vocabulary, size).
        bias: b, shape (vocabulary,).

    Returns:
        L in nats, a scalar.
    """
    return F.cross_entropy(F.linear(features, weight, bias), targets, ignore_index=PADDING, reduction="sum")


def softmax_loss(features: Tensor, targets: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute the cross-entropy, where gradients are wanted on a CPU block by block.

    Args:
        features: H, shape (predictions, size).
        targets: shape (predictions,), int64; ``PADDING`` costs nothing.
        weight: E, shape (vocabulary, size).
        bias: b, shape (vocabulary,).

    Returns:
        L in nats, a scalar that can be differentiated once.
    """
    learning = torch.is_grad_enabled() and features.requires_grad and weight.requires_grad and bias.requires_grad
    if not learning or features.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return softmax_loss_reference(features, targets, weight, bias)
    total: Tensor = _SoftmaxLoss.apply(features, targets, weight, bias)
    return total


class _SoftmaxLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        """Compute loss and gradients together."""
        features, targets, weight, bias = tensors
        by_features, by_weight, by_bias = torch.empty_like(features), torch.zeros_like(weight), torch.zeros_like(bias)
        words = len(weight)
        rows = max(1, _BLOCK // words)
        aligned = -(-words // _ALIGNMENT) * _ALIGNMENT
        block = weight.new_empty(min(rows, len(features)), aligned)[:, :words]
        total = weight.new_zeros((), dtype=torch.float64)
        for h, y, by_h in zip(features.split(rows), targets.split(rows), by_features.split(rows), strict=True):
            kept, y = (y != PADDING)[:, None], y[:, None]
            z = torch.mm(h, weight.T, out=block[: len(h)]).add_(bias)
            z.sub_(z.amax(dim=1, keepdim=True))
            chosen = z.gather(1, y)
            scale = z.exp_().sum(dim=1, keepdim=True)
            total += torch.where(kept, scale.log() - chosen, 0.0).sum()
            z.mul_(kept / scale).scatter_add_(1, y, -kept.to(z))
            torch.mm(z, weight, out=by_h)
            by_weight.addmm_(z.T, h)
            by_bias.add_(z.sum(dim=0))
        ctx.save_for_backward(by_features, by_weight, by_bias)
        return total.to(weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients."""
        by_features, by_weight, by_bias = ctx.saved_tensors
        return gradient * by_features, None, gradient * by_weight, gradient * by_bias
