"""Sums of exponentials on blocks of increments: softmax, its logarithm, attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments.increments import IncrementCall, increment_rule
from unrolled.held_forward.operations.operation_call import axes_of
from unrolled.held_forward.rules.increment import activation

__all__: list[str] = []


def _exponentials(call: IncrementCall, z: Tensor, dim: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Compute a mean of z, the exponentials of z less it, and which entries are masked by minus infinity."""
    # The mean moves with z, so what is added to all of z has no part in the result. Its weights are those of softmax,
    # with and without the state: a sum of the exponentials is then one or more at both ends of the line.
    base, end = call.mode.point(z)
    masked, weights = torch.isneginf(base) & torch.isneginf(end), 0.5 * (base.softmax(dim) + end.softmax(dim))
    with call.mode:
        z = z.masked_fill(masked, 0.0)
        mean = (z * weights).sum(dim, keepdim=True)
        mean = call.mode.point(mean)[1] if call.mode.holds("exp") else mean
        return mean, (z - mean).exp().masked_fill(masked, 0.0), masked


@increment_rule("softmax")
def softmax(call: IncrementCall) -> Tensor:
    """Divide exp z by its sum."""
    z, dim = call.bind("input", "dim")
    _, exponentials, _ = _exponentials(call, z, dim)
    with call.mode:
        return exponentials * exponentials.sum(dim, keepdim=True).reciprocal()


@increment_rule("log_softmax")
def log_softmax(call: IncrementCall) -> Tensor:
    """Subtract the logarithm of the sum of the exponentials."""
    z, dim = call.bind("input", "dim")
    mean, exponentials, masked = _exponentials(call, z, dim)
    with call.mode:
        return (z.masked_fill(masked, 0.0) - mean - exponentials.sum(dim, keepdim=True).log()).masked_fill(
            masked, -torch.inf
        )


@increment_rule("logsumexp")
def logsumexp(call: IncrementCall) -> Tensor:
    """Add the logarithm of the sum of the exponentials to the mean, axis by axis."""
    z, dim, keep = call.bind("input", "dim", "keepdim")
    dims = axes_of(dim, z.dim())
    for each in dims:
        mean, exponentials, _ = _exponentials(call, z, each)
        with call.mode:
            z = mean + exponentials.sum(each, keepdim=True).log()
    with call.mode:
        return z if keep else z.sum(dims)


@increment_rule("scaled_dot_product_attention")
def attention(call: IncrementCall) -> Tensor:
    """Weigh the values by the softmax of the scaled products of query and keys."""
    query, key, value, mask, dropout, causal, scale, grouped = call.bind(*_OF_ATTENTION)
    if dropout:
        raise UnsupportedOperationError(f"{call.name} draws random numbers")
    with call.mode:
        if grouped:
            times = query.shape[-3] // key.shape[-3]
            key, value = (each.repeat_interleave(times, -3) for each in (key, value))
        scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
        if causal:
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
        found: Tensor = scores.softmax(-1) @ value
        return found


_OF_ATTENTION = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")


@increment_rule("log_sigmoid")
def log_sigmoid(call: IncrementCall) -> Tensor:
    """Remember the gate of which this is the logarithm."""
    result = activation(call)
    if call.mode.holds("exp"):
        with call.mode:
            call.mode.logarithms[result] = torch.sigmoid(call.args[0])
    return result


@increment_rule("exp")
def exp(call: IncrementCall) -> Tensor:
    """Multiply by the slope; by shares the exponential of a gate's logarithm is the gate, what was added held."""
    gate = call.mode.logarithms.get(call.args[0])
    if gate is None:
        return activation(call)
    with call.mode:
        return gate * call.mode.of_numbers(call.at_both()[1] / call.mode.point(gate)[1])
