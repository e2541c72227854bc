r"""The effect of an input on the product of the state under multiplicative integration: a gain and an offset.

    gain = α ⊙ (W x) + β_1,   offset = β_2 ⊙ (W x) + b

Autograd would read memory four times forward and some fifteen times backward, which costs more than the matrix
products. Here W x is read once in each direction.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unrolled.kernels.base import differentiate_reference, needs_reference, time_chunks
from unrolled.kernels.products import rows

__all__ = ["gain_and_offset"]


def gain_and_offset(
    from_input: Tensor, alpha: Tensor, beta_hidden: Tensor, beta_input: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Compute the gain and the offset, both of the shape of W x, (time, batch, gates), from vectors of length gates."""
    tensors = (from_input, alpha, beta_hidden, beta_input, bias)
    return _reference(*tensors) if needs_reference(tensors) else _GainAndOffset.apply(*tensors)


def _reference(
    from_input: Tensor, alpha: Tensor, beta_hidden: Tensor, beta_input: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    offset = beta_input * from_input
    return alpha * from_input + beta_hidden, offset if bias is None else offset + bias


class _GainAndOffset(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, from_input: Tensor, alpha: Tensor, beta_hidden: Tensor, beta_input: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(from_input, alpha, beta_hidden, beta_input, bias)
        gain, offset = torch.empty_like(from_input), torch.empty_like(from_input)
        for start, stop in time_chunks(len(from_input), from_input[0].numel()):
            here = from_input[start:stop]
            torch.addcmul(beta_hidden, alpha, here, out=gain[start:stop])
            torch.mul(beta_input, here, out=offset[start:stop])
            if bias is not None:
                offset[start:stop] += bias
        return gain, offset

    @staticmethod
    def backward(ctx: Any, grad_gain: Tensor, grad_offset: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        if torch.is_grad_enabled():
            return differentiate_reference(_reference, tensors, (grad_gain, grad_offset))
        from_input, alpha, _, beta_input, bias = tensors
        found, sums = torch.empty_like(from_input), from_input.new_zeros(4, from_input.shape[-1])
        for start, stop in time_chunks(len(from_input), from_input[0].numel()):
            here, gain, offset, out = (rows(each[start:stop]) for each in (from_input, grad_gain, grad_offset, found))
            torch.mul(alpha, gain, out=out).addcmul_(beta_input, offset)
            ones = here.new_ones(len(here))
            for total, terms in zip(sums, (gain * here, gain, offset * here, offset), strict=True):
                total.addmv_(terms.T, ones)
        grad_alpha, grad_beta_hidden, grad_beta_input, grad_bias = sums
        return found, grad_alpha, grad_beta_hidden, grad_beta_input, None if bias is None else grad_bias
