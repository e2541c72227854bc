r"""What an input does to the product of the state under multiplicative integration: a gain and an offset.

    gain = α ⊙ (W x) + β_1,   offset = β_2 ⊙ (W x) + b

Autograd would take four sweeps through memory forward and some fifteen back, more than the matrix products cost; here
W x is read once each way.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unrolled.kernels.base import differentiate_plain, only_plain_serves, stretches
from unrolled.kernels.products import rows

__all__ = ["gain_and_offset"]


def gain_and_offset(
    by_input: Tensor, alpha: Tensor, beta_hidden: Tensor, beta_input: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Compute what U h is multiplied by, and what is added then.

    Args:
        by_input: W x, shape (time, batch, gates).
        alpha: α, shape (gates,).
        beta_hidden: β_1, likewise.
        beta_input: β_2, likewise.
        bias: b, likewise; None where there is none.

    Returns:
        Gain and offset, both of the shape of ``by_input``.
    """
    tensors = (by_input, alpha, beta_hidden, beta_input, bias)
    return _plain(*tensors) if only_plain_serves(tensors) else _GainAndOffset.apply(*tensors)


def _plain(
    by_input: Tensor, alpha: Tensor, beta_hidden: Tensor, beta_input: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    offset = beta_input * by_input
    return alpha * by_input + beta_hidden, offset if bias is None else offset + bias


class _GainAndOffset(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, by_input: Tensor, alpha: Tensor, beta_hidden: Tensor, beta_input: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(by_input, alpha, beta_hidden, beta_input, bias)
        gain, offset = torch.empty_like(by_input), torch.empty_like(by_input)
        for start, stop in stretches(len(by_input), by_input[0].numel()):
            here = by_input[start:stop]
            torch.addcmul(beta_hidden, alpha, here, out=gain[start:stop])
            torch.mul(beta_input, here, out=offset[start:stop])
            if bias is not None:
                offset[start:stop] += bias
        return gain, offset

    @staticmethod
    def backward(ctx: Any, by_gain: Tensor, by_offset: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        if torch.is_grad_enabled():
            return differentiate_plain(_plain, tensors, (by_gain, by_offset))
        by_input, alpha, _, beta_input, bias = tensors
        found, sums = torch.empty_like(by_input), by_input.new_zeros(4, by_input.shape[-1])
        for start, stop in stretches(len(by_input), by_input[0].numel()):
            here, gain, offset, out = (rows(each[start:stop]) for each in (by_input, by_gain, by_offset, found))
            torch.mul(alpha, gain, out=out).addcmul_(beta_input, offset)
            ones = here.new_ones(len(here))
            for total, terms in zip(sums, (gain * here, gain, offset * here, offset), strict=True):
                total.addmv_(terms.T, ones)
        by_alpha, by_beta_hidden, by_beta_input, by_bias = sums
        return found, by_alpha, by_beta_hidden, by_beta_input, None if bias is None else by_bias
