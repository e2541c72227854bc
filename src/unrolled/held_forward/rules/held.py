"""Operations whose result is held: multipliers, decays, weights of attention; and what asks about value only."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.held_operations import ANSWERS, MULTIPLIERS, ROUNDING_OPERATIONS
from unrolled.held_forward.mode import HeldCall, rule
from unrolled.held_forward.operations.operands import detached, for_each_tensor, operands
from unrolled.held_forward.operations.operands_read import OF_NONE
from unrolled.held_forward.operations.operation_call import OperationCall
from unrolled.held_forward.operations.python_values import TAKES_OUT, taken_out_error
from unrolled.held_forward.rules.additive import held_outside

__all__ = ["between", "clamp_operands"]


@rule(*MULTIPLIERS, *ANSWERS)
def held(call: HeldCall) -> Any:
    """Hold the result; where it is added to value it shows as a row of its own."""
    return call.mode.hold(call)


@rule(*ROUNDING_OPERATIONS)
def rounded(call: HeldCall) -> Any:
    """Hold the result, and remember of what it was made: it may become an id."""
    result = call.mode.hold(call)
    call.mode.vectors.rounded[result] = call.args[0]
    return result


@rule("var_mean", "std_mean")
def spread_and_mean(call: HeldCall) -> tuple[Tensor, Tensor]:
    """Hold the variance; the mean is linear."""
    return call.mode.hold(call)[0], call.run(*call.args)[1]


@rule("log_softmax", "_log_softmax")
def log_softmax(call: HeldCall) -> Tensor:
    """Compute x - log Σ exp x, of which the second is held."""
    x = call.args[0]
    logarithm = call.held() - x.detach()
    logarithm.masked_fill_(torch.isinf(x.detach()), 0.0)  # what is masked stays minus infinity
    call.rows.mark(logarithm, "held", "log_softmax")
    return x + call.rows.constant(logarithm.contiguous())


@rule(
    *OF_NONE,
    *"equal allclose is_nonzero __bool__ __contains__ is_floating_point is_complex is_signed is_conj is_neg size dim "
    "numel stride storage_offset is_contiguous element_size data_ptr ndimension nelement __len__ get_device "
    "is_same_size result_type dim_order is_pinned is_inference is_set_to __hash__ untyped_storage".split(),
)
def question(call: HeldCall) -> Any:
    """Give Python an answer, or what has the form of an operand."""
    return call.held()


@rule("retain_grad", "register_hook")
def about_gradients(call: HeldCall) -> Any:
    """Keep or change the gradient of a copy: those of a held run are not the model's."""
    return call.function(call.args[0].detach().requires_grad_(), *call.args[1:])


@rule(*TAKES_OUT)
def leaves_torch(call: HeldCall) -> Any:
    """Give Python numbers where it is seen afterwards whether the output reads them; else refuse to lose value."""
    if call.mode.taken is None:
        raise taken_out_error(call.name)
    call.mode.taken.note(call.name)
    with torch.no_grad():  # numpy would share the memory
        return call.function(*for_each_tensor(detached(call.args), torch.clone), **call.kwargs)


@rule("dlpack")
def leaves_by_memory(call: HeldCall) -> Any:
    """Refuse to lose value out of torch."""
    raise taken_out_error(call.name)


@rule("grad", "backward")
def differentiated(_: HeldCall) -> Any:
    """Refuse a model that computes a gradient in its forward pass."""
    raise UnsupportedOperationError(
        "the model differentiates inside its forward (torch.autograd.grad), and no rule says what a gradient owes to "
        "its operands; explain a part of the model"
    )


@rule("max", "min", "maximum", "minimum", "fmax", "fmin")
def extreme(call: HeldCall) -> Any:
    """Choose the largest or smallest; the choice is held. Equal entries of two tensors count by halves."""
    x, second = call.bind("input", "other")
    if not isinstance(second, Tensor):
        return selection(call)
    first_held, second_held = detached(x), detached(second)
    chosen = first_held > second_held if "max" in call.name else first_held < second_held
    equal = first_held == second_held
    with call.mode:
        larger = torch.where(chosen, x, second)
        return torch.where(equal, 0.5 * (x + second), larger) if bool(equal.any()) else larger


@rule("amax", "amin")
def extreme_over_axes(call: HeldCall) -> Tensor:
    """Choose the largest or smallest over axes; equal entries have equal parts."""
    x, dim, keep = call.bind("input", "dim", "keepdim")
    dim = tuple(range(x.dim())) if dim is None else dim
    best = call.function(x.detach(), dim, keepdim=True)
    chosen = x.detach() == best
    weight = chosen.to(x.dtype) / chosen.sum(dim, keepdim=True)  # a quotient of integers has the default type

    def extreme_of(part: Tensor) -> Tensor:
        return (part.masked_fill(~chosen, 0.0) * weight).sum(dim, keepdim=bool(keep))  # what is masked may be infinite

    return call.gates.keep_chosen(extreme_of(x), (x,), lambda parts: extreme_of(parts[0]))


@rule(
    *"topk sort kthvalue median nanmedian cummax cummin mode msort max_pool1d max_pool2d max_pool3d "
    "max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d aminmax".split()
)
def selection(call: HeldCall) -> Any:
    """Pick entries: which ones is held, and autograd holds it. Those of a gate are gates."""
    result, gate = call.run(*call.args), call.gates.of(call.args[0])
    # as those of argmax: what a model reads at places is not a parameter alone
    call.rows.mark([each for each in operands([result]) if not each.is_floating_point()], "held", call.name)
    if gate is not None and isinstance(result, tuple) and call.name in _ALONG_AN_AXIS:
        picked, index = result
        axis = call.named("input", *_ALONG_AN_AXIS[call.name]).get("dim", -1)
        index = index if index.dim() == gate.risen.dim() else index.unsqueeze(axis)
        risen, at_zero = (part.gather(axis, index).view_as(picked) for part in (gate.risen, gate.at_zero))
        call.gates.keep_each(picked, risen, at_zero, gate.of_gates)
    return result


_ALONG_AN_AXIS = dict.fromkeys("max min median nanmedian mode cummax cummin sort".split(), ("dim",)) | dict.fromkeys(
    ("topk", "kthvalue"), ("k", "dim")
)
"""Operations that give picked entries and their places along an axis, with the names of their arguments."""


@rule("quantile", "nanquantile")
def quantile(call: HeldCall) -> Tensor:
    """Interpolate between the two entries beside a quantile: which ones and their weights are held."""
    low, high = (call.function(*call.args, **{**call.kwargs, "interpolation": side}) for side in ("lower", "higher"))
    with torch.no_grad():
        gap = high - low
        weight = ((call.held() - low) / gap.masked_fill(gap == 0, 1.0)).nan_to_num(0.0)  # of no numbers there is none
    return low + weight * (high - low)


def clamp_operands(call: OperationCall) -> tuple[Any, Any, Any]:
    """Give x, its lower bound and its upper one; None for a bound that is left out."""
    names = {"clamp_min": ("input", "min"), "clamp_max": ("input", "max")}.get(call.name, ("input", "min", "max"))
    given = dict(zip(names, call.bind(*names), strict=True))
    return given["input"], given.get("min"), given.get("max")


@rule("clamp", "clamp_min", "clamp_max")
def clamp(call: HeldCall) -> Tensor:
    """Keep what lies between the bounds; a bound that is reached is a constant, or carries value itself."""
    x, low, high = clamp_operands(call)
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        with call.mode:
            return between(x, low, high)
    value = call.held()
    return held_outside(call, x, value == x.detach(), value)


def between(x: Tensor, low: Tensor | float | None, high: Tensor | float | None) -> Tensor:
    """Keep what lies between bounds of which one is a tensor, in a mode: the larger of two, then the smaller."""
    for choose, bound in ((torch.maximum, low), (torch.minimum, high)):
        if bound is not None:
            x = choose(x, bound if isinstance(bound, Tensor) else torch.full_like(x.detach(), bound))
    return x
