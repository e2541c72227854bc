"""How the operations of a step act on blocks of increments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments.increments import IncrementCall, increment_rule
from unrolled.held_forward.operations.operands import holds_numbers, of_kind, operands
from unrolled.held_forward.operations.operands_read import OF_NONE, copied_data
from unrolled.held_forward.rules.activation import ELEMENTWISE
from unrolled.held_forward.rules.linear import OF_SEVERAL_ENTRIES
from unrolled.held_forward.tensor_facts.gates import OF_ONE_ENTRY
from unrolled.held_forward.tensor_facts.moves import EACH_BY_ITSELF, JOINS
from unrolled.held_forward.token_ids.written_positions import WRITES

__all__ = ["linear_in_all", "scatter_operands"]

_OF_ENTRIES = OF_ONE_ENTRY | JOINS
_LIKE = frozenset("to type_as view_as reshape_as expand_as".split())
_PLACES = dict.fromkeys("getitem gather index_select take take_along_dim masked_select".split(), (1, None)) | {
    "index_put": (1, 2),
    "scatter": (2, 3),
    "scatter_add": (2, 3),
    "index_add": (2, 3),
}
"""Of operations by index: which operands are places."""


@increment_rule(
    *OF_ONE_ENTRY.union(OF_SEVERAL_ENTRIES)
    - {"as_strided", "to", "type", "type_as"},  # which ask how a tensor lies in memory, or which type it has
    *JOINS,
    *WRITES.keys() - {"masked_scatter", "scatter"},
    *"complex scatter_add index_add".split(),
)
def linear_in_all(call: IncrementCall) -> Any:
    """Run the operation on the increments; what does not move has none."""
    if call.name in _LIKE and not call.moves(call.args[0]):  # what moves gives the type or the shape
        result = call.run(*call.mode.at(1, call.args))
        return call.mode.of_numbers(result) if call.mode.is_number(call.args[0]) else result
    places = call.args[slice(*_PLACES[call.name])] if call.name in _PLACES else ()
    if any(map(call.moves, operands(places))):
        raise UnsupportedOperationError(f"the state changes which entries {call.name} reads or writes")

    def increments(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return of_kind(value, (increments(each) for each in value))
        if not isinstance(value, Tensor) or call.moves(value):
            return value
        numbers = holds_numbers(value) or call.name in JOINS
        return torch.zeros_like(value) if numbers else value

    result = call.mode.keep(call.run(*increments(call.args)), *call.at_both())
    return call.mode.keep_gate(result, call.args, call.run) if call.name in _OF_ENTRIES else result


@increment_rule(*EACH_BY_ITSELF)
def each_by_itself(call: IncrementCall) -> Any:
    """Re-arrange the increments of each tensor; what does not move stays a number."""
    given, (base, end) = operands(call.args), call.at_both()
    several = [[each] if isinstance(end, Tensor) else each for each in (call.run(*call.args), base, end)]
    results = [
        call.mode.keep_gate(call.mode.follow(*found), (each,), torch.zeros_like(found[2]).add)
        if call.moves(each)
        else call.mode.of_numbers(found[2])
        if call.mode.is_number(each)
        else found[2]
        for each, *found in zip(given, *several, strict=True)
    ]
    return results[0] if isinstance(end, Tensor) else of_kind(end, results)


@increment_rule("detach")
def detach(call: IncrementCall) -> Any:
    """Keep the increments, and their graph: only training tells a tensor from its detached one."""
    (x,) = call.args
    result = call.mode.follow(x.view_as(x), *call.mode.point(x))
    return call.mode.keep_gate(result, call.args, lambda each: each)


@increment_rule("deepcopy")
def deep_copy(call: IncrementCall) -> Any:
    """Copy the increments."""
    with call.mode:
        return call.args[0].clone()


@increment_rule("as_tensor", "asarray", "tensor", "new_tensor")
def tensor_of(call: IncrementCall) -> Any:
    """Give the operand in the type that is asked for; one that is new shares no memory with another tensor."""
    made = call.run(*call.mode.at(1, call.args))
    x = copied_data(call.operation, call.args)
    if not any(map(call.moves, operands([x]))):
        return call.mode.of_numbers(made)
    if not isinstance(x, Tensor):
        raise UnsupportedOperationError(f"{call.name} makes a tensor of a list's numbers, where increments are lost")
    with call.mode:
        return x.to(made.dtype).clone()


@increment_rule("copy")
def copy(call: IncrementCall) -> Tensor:
    """Write a whole tensor over another one, in the shape and type of that one."""
    over, given = call.args[:2]
    target, (base, end) = call.mode.point(over)[1], call.mode.point(given)
    shape = torch.broadcast_shapes(over.shape, target.shape)
    block = given if call.moves(given) else torch.zeros_like(given)
    result = call.mode.follow(*(each.to(over.dtype).expand(shape) for each in (block, base, end)))
    kept: Tensor = call.mode.keep_gate(result, (given,), lambda each: each.expand(shape))
    return kept


@increment_rule("scatter")
def scatter(call: IncrementCall) -> Any:
    """Write a tensor, or a number, which has no increments."""
    x, dim, index, source = scatter_operands(call)
    if not isinstance(source, Tensor):
        source = torch.full(index.shape, float(source), dtype=x.dtype, device=x.device)
    return linear_in_all(replace(call, args=(x, dim, index, source), kwargs={}))


def scatter_operands(call: IncrementCall) -> tuple[Tensor, int, Tensor, Any]:
    """Give the target, the axis, the places, and the tensor or the number that is written."""
    names = ("input", "dim", "index", "src")
    x, dim, index, source = call.bind(*names)
    if options := call.options_beyond(*names, "value"):
        raise UnsupportedOperationError(f"{call.name} with {', '.join(options)} has no rule for increments")
    return x, dim, index, call.kwargs["value"] if source is None else source


@increment_rule("add", "sub")
def add(call: IncrementCall) -> Tensor:
    """Add the increments of a ± s b."""
    mode, (a, b) = call.mode, call.args[:2]
    scale = call.kwargs.get("alpha", 1) * (1 if call.name == "add" else -1)

    def base(value: Any) -> Any:
        return mode.point(value)[0] if call.moves(value) else mode.base_of_constant(value)

    begin, end = base(a) + scale * base(b), mode.point(a)[1] + scale * mode.point(b)[1]
    block = scale * b if not call.moves(a) else a if not call.moves(b) else torch.add(a, b, alpha=scale)
    shape = end.shape if block.shape == end.shape else torch.broadcast_shapes(block.shape, end.shape)
    of_operand = block is a or block is b  # which a step that changes the sum in place does not change
    fresh = block.expand(shape) if block.shape != shape else block.clone() if of_operand else block
    result = mode.follow(fresh, torch.as_tensor(begin, dtype=end.dtype, device=end.device).expand_as(end), end)
    for log, other in ((a, b), (b, a)):
        if log in mode.logarithms and other not in mode.logarithms and (call.name == "add" or log is a):
            mode.logarithms[result] = mode.logarithms[log]
    number = b if call.moves(a) else a
    if call.moves(number) or not mode.is_number(number):
        return result
    return mode.keep_gate(result, (a if call.moves(a) else b,), end.new_zeros(shape).add)


@increment_rule(*ELEMENTWISE - {"log_sigmoid"}, *"sigmoid hardsigmoid exp2 cos cosh square prelu".split())
def activation(call: IncrementCall) -> Tensor:
    """Multiply by the slope of the line from its start to the end."""
    places = [place for place, each in enumerate(call.args) if call.moves(each)]
    if len(places) != 1 or any(map(call.moves, call.kwargs.values())):
        raise UnsupportedOperationError(f"{call.name} of two operands that the state moves has no rule for increments")
    z = call.args[places[0]]
    if z.is_complex() and call.name == "abs":
        with call.mode:
            return torch.view_as_real(z).norm(dim=-1)
    if z.is_complex():
        raise UnsupportedOperationError(f"{call.name} of complex numbers has no rule for increments")

    def function(x: Tensor) -> Tensor:
        return call.run(*(x if place == places[0] else each for place, each in enumerate(call.args)))

    base, end = call.mode.point(z)
    start = call.mode.line_start(base, end)
    low, high = function(start), function(end)
    result = call.mode.follow(_slope(function, start, end, low, high) * z, low.expand_as(high), high)
    if call.name in ("sigmoid", "hardsigmoid"):
        call.mode.gates[result] = True
    return result


@increment_rule("log", "log2", "log10", "tan")
def with_pole(call: IncrementCall) -> Tensor:
    """Multiply by the slope as well, where the line does not begin at a pole."""
    start = call.mode.line_start(*call.mode.point(call.args[0]))
    if not bool(torch.isfinite(call.run(start, *call.args[1:])).all()):
        raise UnsupportedOperationError(f"{call.name} is infinite where the state is empty")
    return activation(call)


@increment_rule("reciprocal", "rsqrt")
def inverse(call: IncrementCall) -> Tensor:
    """Multiply by the slope, and remember the divisor."""
    result, (x,) = with_pole(call), call.args
    with call.mode:
        call.mode.divisors[result] = x.sqrt() if call.name == "rsqrt" else x * 1
    return result


@increment_rule("pow")
def power(call: IncrementCall) -> Tensor:
    """Multiply by the slope; a negative power is an inverse."""
    result, (x, exponent) = activation(call), call.args
    if isinstance(exponent, int | float) and exponent < 0:
        with call.mode:
            call.mode.divisors[result] = x**-exponent
    return result


def _slope(function: Callable[[Tensor], Tensor], start: Tensor, end: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Compute (φ(z) - φ(z₀)) / (z - z₀); where the two nearly coincide, the derivative in the middle."""
    step, rise, eps = end - start, high - low, torch.finfo(end.dtype).eps
    slope = rise / torch.where(step == 0, torch.ones_like(step), step)
    near = step.abs() < eps**0.33
    if bool(near.any()):
        differentiate = _complex_derivative if rise.is_complex() and not step.is_complex() else _derivative
        derivative = differentiate(function, (start + 0.5 * step).detach())
        derivative = derivative.masked_fill(derivative.isinf(), 0.0)  # of a root at zero, where nothing moves
        # across a kink, or near a pole, the derivative does not give the rise, and the quotient does; gelu and
        # tanhshrink subtract numbers of z's size, so a small value of theirs rounds as z does
        rounding = 4 * eps * (start.abs() + end.abs() + low.abs() + high.abs())
        slope = torch.where(near & ((derivative * step - rise).abs() <= rounding), derivative, slope)
    return slope.masked_fill(slope.isnan(), 0.0)  # a branch that the step does not choose may be no number


def _derivative(function: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """Differentiate a function each of whose values reads one entry."""
    if torch.is_inference_mode_enabled():  # autograd records nothing there; this takes twice the time
        pull_back: Callable[[Tensor], tuple[Tensor]] = torch.func.vjp(function, z)[1]
        return pull_back(torch.ones_like(z))[0]
    with torch.enable_grad():
        z.requires_grad_()
        return torch.autograd.grad(function(z).sum(), z)[0]


def _complex_derivative(function: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """Differentiate a function from real numbers to complex ones, as a real number to a complex power."""
    return torch.complex(_derivative(lambda x: function(x).real, z), _derivative(lambda x: function(x).imag, z))


@increment_rule("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d")
def dropped(call: IncrementCall) -> Tensor:
    """Return the operand: in evaluation mode nothing is dropped."""
    default = call.name in ("dropout", "dropout1d", "dropout2d", "dropout3d")
    if call.kwargs.get("training", call.args[2] if len(call.args) > 2 else default):
        raise UnsupportedOperationError(f"{call.name} draws random numbers")
    found: Tensor = call.args[0]
    return found


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


@increment_rule(
    *OF_NONE, *"size dim numel __len__ is_floating_point is_complex is_contiguous stride result_type".split()
)
def question(call: IncrementCall) -> Any:
    """Answer by the end: what a tensor is does not move."""
    return call.mode.of_numbers(call.run(*call.mode.at(1, call.args)))
