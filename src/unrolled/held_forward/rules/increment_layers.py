"""How the layers that a step may hold act on blocks of increments: each is computed by its parts."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments.increments import IncrementCall, increment_rule
from unrolled.held_forward.operations.operands import operands
from unrolled.held_forward.operations.operands_read import CONVOLUTIONS

__all__: list[str] = []


@increment_rule(*CONVOLUTIONS)
def convolution(call: IncrementCall) -> Tensor:
    """Convolve the increments, and add the bias to what they move around."""
    names = ("input", "weight", "bias")
    x, weight, bias = call.bind(*names)
    options = call.options_beyond(*names)
    if not call.moves(x) or call.moves(weight):
        raise UnsupportedOperationError(f"{call.name} with a kernel that the state makes has no rule for increments")

    def convolved(value: Tensor) -> Tensor:
        found: Tensor = call.function(value, weight, None, *call.args[3:], **options)
        return found

    result = call.mode.follow(convolved(x), *map(convolved, call.mode.point(x)))
    if bias is None:
        return result
    with call.mode:
        return result + bias.reshape(-1, *[1] * (result.dim() - 2))


@increment_rule("pad")
def pad(call: IncrementCall) -> Tensor:
    """Pad the increments with zeros: a number that is put beside them does not move."""
    x, widths, mode = call.bind("input", "pad", "mode")
    mode = mode or "constant"
    block = torch.nn.functional.pad(x, widths, mode)

    def beside_ones(gates: Tensor) -> Tensor:
        return torch.nn.functional.pad(gates, widths, mode, 1.0 if mode == "constant" else None)

    result: Tensor = call.mode.keep_gate(call.mode.keep(block, *call.at_both()), (x,), beside_ones)
    return result


@increment_rule("setitem")
def setitem(call: IncrementCall) -> Tensor:
    """Write into a block, its base and its end; a constant that is written has no increments."""
    target, index, value = call.args
    if any(map(call.moves, operands([index]))):
        raise UnsupportedOperationError("the state changes which entries the step writes")
    block = target.clone() if call.moves(target) else torch.zeros_like(target)
    base, end = (each.clone() for each in call.mode.point(target))
    block[index] = value if call.moves(value) else 0.0
    base[index], end[index] = call.mode.point(value)
    return call.mode.follow(block, base, end)
