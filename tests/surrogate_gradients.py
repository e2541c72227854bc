"""A spike as spiking networks are trained with it."""

from __future__ import annotations

import torch


class Spike(torch.autograd.Function):
    """A jump whose gradient is that of another function."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return (z > 0).to(z.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (z,) = ctx.saved_tensors
        return gradient / (1 + 10 * z.abs()) ** 2
