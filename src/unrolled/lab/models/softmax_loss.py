r"""The cross-entropy of a linear softmax layer, computed without storing all logits.

With Z = H Eᵀ + b, P the softmax of its rows and Y the one-hot targets, one row each,

.. math:: L = -\sum_n \log P_{n y_n}, \qquad δZ = P - Y, \qquad δH = δZ\,E, \quad δE = δZ^\top H, \quad δb = δZ^\top 1

With a vocabulary of ten thousand words Z is by far the largest tensor of a language model, and apart from the three
products most of the time is spent on reading and writing it. Here Z is computed in blocks of rows that fit into the
cache, converted to δZ in place, and consumed; the gradients are known together with the loss. The tests compare
:func:`softmax_loss` with :func:`softmax_loss_reference`.
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
_ALIGNMENT = 16  # in floats: rows of other lengths make the first product half as fast


def softmax_loss_reference(features: Tensor, targets: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute :func:`softmax_loss` from all logits."""
    return F.cross_entropy(F.linear(features, weight, bias), targets, ignore_index=PADDING, reduction="sum")


def softmax_loss(features: Tensor, targets: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute the summed cross-entropy, block by block if gradients are required on a CPU.

    Args:
        features: H, shape (predictions, size).
        targets: Shape (predictions,), int64; ``PADDING`` costs nothing.
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
        """Compute the loss and the gradients together."""
        features, targets, weight, bias = tensors
        grad_features, grad_weight = torch.empty_like(features), torch.zeros_like(weight)
        grad_bias = torch.zeros_like(bias)
        words = len(weight)
        rows = max(1, _BLOCK // words)
        aligned = -(-words // _ALIGNMENT) * _ALIGNMENT
        block = weight.new_empty(min(rows, len(features)), aligned)[:, :words]
        total = weight.new_zeros((), dtype=torch.float64)
        for h, y, grad_h in zip(features.split(rows), targets.split(rows), grad_features.split(rows), strict=True):
            kept, y = (y != PADDING)[:, None], y[:, None]
            z = torch.mm(h, weight.T, out=block[: len(h)]).add_(bias)
            z.sub_(z.amax(dim=1, keepdim=True))
            chosen = z.gather(1, y)
            scale = z.exp_().sum(dim=1, keepdim=True)
            total += torch.where(kept, scale.log() - chosen, 0.0).sum()
            z.mul_(kept / scale).scatter_add_(1, y, -kept.to(z))
            torch.mm(z, weight, out=grad_h)
            grad_weight.addmm_(z.T, h)
            grad_bias.add_(z.sum(dim=0))
        ctx.save_for_backward(grad_features, grad_weight, grad_bias)
        return total.to(weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients."""
        grad_features, grad_weight, grad_bias = ctx.saved_tensors
        return gradient * grad_features, None, gradient * grad_weight, gradient * grad_bias
