"""The rule of a step that a user wrote: each call is a layer of one cell with one step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from unrolled.cells.batch_layout import Layout
from unrolled.decomposition.held_networks.held_model import HeldModel
from unrolled.decomposition.opening.layer_runs import NetworkCall
from unrolled.decomposition.opening.parity import Parity
from unrolled.decomposition.own_steps.own_cell import OwnCell
from unrolled.decomposition.own_steps.step_calls import MOST_OF_ERROR, StepCall, real_form
from unrolled.decomposition.own_steps.step_tensors import StepTensors
from unrolled.errors import RandomOperationError, UnsupportedOperationError, first_line
from unrolled.held_forward.mode import HeldCall, rule
from unrolled.model_runs.eval_mode import eval_copy
from unrolled.model_runs.nested_tensors import leaves, rebuilt

__all__ = ["OWN_STEPS"]

_FEW = 1024
"""The most numbers of an argument that are compared one by one."""
_MOVE = 2.0**-6
"""Relative change of a step's numbers; it shows how large the sums are that the step makes of them."""

OWN_STEPS = frozenset({"own_step"})
"""Operations that are steps of the user's own."""
_STEP_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
"""How far a step that is run again may be from what it gave, relative to its size or its sums'; 0.1 in other types.

It is closer than :data:`unrolled.decomposition.opening.parity.PARITY`: one step rounds less than a sequence of them.
"""


@rule("own_step")
def held_own_step(held: HeldCall) -> Any:
    """Run one step as a layer of one cell."""
    call, tensors = held.args
    assert isinstance(held.mode, HeldModel)
    given = dict(zip(call.places, tensors, strict=True))
    with torch.no_grad():
        result = call.run_on_copies({place: each.detach() for place, each in given.items()})
    step = StepTensors(call, given, {place: real_form(each) for place, each in leaves(result)})
    opened = _first_that_opens(step.forms)
    cell, step = opened.cell, opened.step
    step.remember_form()
    layout = Layout(torch.ones(step.batch, dtype=torch.int64, device="cpu"), 1)
    sequence = NetworkCall([[cell]], opened.input[None], layout, [opened.start], opened.own[None])
    _, (final,) = held.mode.run_network(sequence)
    columns_of_parts = zip(final.split(cell.part_sizes, -1), step.parts, strict=True)
    new = [step.from_columns(column, each).clone() for column, (each, _) in columns_of_parts]  # as view_as_complex asks
    return rebuilt(result, {place: new[number] for place, number in step.part_of.items()})


@dataclass(frozen=True)
class _Opened:
    """One call as a cell with one step: what it reads, and the next state, which it gives without being run again."""

    step: StepTensors
    cell: OwnCell
    input: Tensor
    start: Tensor
    own: Tensor


def _first_that_opens(forms: Sequence[StepTensors]) -> _Opened:
    """Make a call a cell in the first form that allows it; the refusal of the likeliest says what is wrong."""
    likeliest, *others = forms
    try:
        return _opened(likeliest)
    except UnsupportedOperationError:
        for each in others:
            with suppress(UnsupportedOperationError):
                return _opened(each)
        raise


def _opened(step: StepTensors) -> _Opened:
    """Make a call a cell."""
    step.check()
    parts, read = step.parts, step.read
    cell = OwnCell(
        step.call,
        _with_weights_of_now(step.call),
        [(place, step.features(each)) for place, each in step.inputs.items()],
        [(places[0], step.features(each), step.axis(each)) for each, places in parts],
        read,
        {place: each.detach() for place, each in step.others.items()},
        step.batch,
        step.alone,
        step.shared,
    )
    columns = [step.columns(each) for each in step.inputs.values()]
    # a step without input reads 0
    x = torch.cat(columns, dim=-1) if columns else step.known[0].new_zeros(step.batch, 1)
    first = [
        torch.zeros_like(each) if place is None else step.given[place]
        for (each, _), place in zip(parts, read, strict=True)
    ]
    axes = [step.axis(each) for each, _ in parts]
    start = torch.cat(
        [each.movedim(axis, 0).reshape(step.batch, -1) for each, axis in zip(first, axes, strict=True)], -1
    )
    own = torch.cat([step.columns(each) for each, _ in parts], dim=-1)
    cell.rows_apart |= _mixes_rows(step, cell, x.detach(), start.detach(), own)
    return _Opened(step, cell, x, start, own)


def _with_weights_of_now(call: StepCall) -> Callable[..., Any]:
    """Return the step of a copy of the module: a model may give it other weights before its next step."""
    if inspect.ismethod(call.function) and call.function.__self__ is call.module:
        copied = eval_copy(call.module)
        copied.__dict__.pop(call.form.method, None)
        function: Callable[..., Any] = call.function.__func__.__get__(copied)
        return function
    return call.function


def _mixes_rows(step: StepTensors, cell: OwnCell, x: Tensor, state: Tensor, own: Tensor) -> bool:
    """Tell whether the rows of a batch change each other; refuse such a step of several examples."""
    # The answer is kept for calls of the same shapes and other arguments: a call that reads no state mixes none, and
    # another graph may join other rows. A step that fails on more rows than one is like one that mixes them.
    call = step.call
    others = tuple((place, _identity(each)) for place, each in step.others.items())
    plain = tuple(each for each in call.bound.arguments.values() if isinstance(each, bool | int | float | str | None))
    kind = (x.shape, state.shape, x.dtype, call.places, others, plain, step.stacked)
    if kind not in call.form.mixes:
        why = _failure_on_more_rows(call, cell, x, state, own)
        if why and len(x) > 1:
            raise call.refusal(why)
        call.form.mixes[kind] = bool(why)
    return call.form.mixes[kind]


def _identity(other: Tensor) -> tuple[Any, ...]:
    """Return what tells an argument from another one: its numbers or, where they are many, their place in memory."""
    if other.numel() > _FEW:
        return (other.data_ptr(), other._version, other.shape)
    return tuple(other.reshape(-1).tolist())


@torch.no_grad()
def _failure_on_more_rows(call: StepCall, cell: OwnCell, x: Tensor, state: Tensor, own: Tensor) -> str:
    """Say how a step goes wrong on three times as many rows; nothing if it does not."""
    before = torch.get_rng_state()
    size = min(1.0, max(_largest(state), _largest(own))) or 1.0  # a wave of 0.1 would hide what small states do
    wave = 0.1 * size * _wave(state)
    try:
        both = cell.step(torch.stack((x, x, 0.9 * x)), torch.stack((state, state + wave, state - wave)))
        apart = torch.stack((own, cell.step(x, state + wave), cell.step(0.9 * x, state - wave)))
    except RandomOperationError:
        raise
    except Exception as error:  # a step may fail on more rows by any error of its own
        why = first_line(error)[:MOST_OF_ERROR]
        return f"on a batch of {3 * cell.batch} rows it fails ({why}); write it for (batch, features)"
    if not torch.equal(torch.get_rng_state(), before):
        raise RandomOperationError(
            f"{call.path or 'the model'}.{call.form.method} of {type(call.module).__name__} draws random numbers at "
            "each evaluation, and an explanation takes several; switch that off when self.training is false"
        )
    precision, parts = _STEP_TOLERANCE.get(x.dtype, 0.1), cell.part_sizes
    pairs = zip(both.split(parts, -1), apart.split(parts, -1), strict=True)
    parities = [Parity.of(one, other, precision, floor=0.0) for one, other in pairs]
    if not all(each.holds for each in parities):
        sizes = _sizes_of_sums(cell, x, state, own)
        parities = [replace(each, floor=min(1.0, size)) for each, size in zip(parities, sizes, strict=True)]
    gaps = [each.gap for each in parities if not each.holds]
    if not gaps:
        return ""
    return (
        f"a row of the batch changes another one, by {max(gaps):.2g}; explain a batch of one, or, where the rows are "
        "no examples, as the nodes of a graph, use unrolled.account"
    )


def _sizes_of_sums(cell: OwnCell, x: Tensor, state: Tensor, own: Tensor) -> list[float]:
    """Return the size of what each part of a state is a sum of: how much it moves with the step's numbers."""
    moved = [each * (1 + _MOVE * _wave(each)) for each in (x, state)]
    return [_largest(each) / _MOVE for each in (cell.step(*moved) - own).split(cell.part_sizes, -1)]


def _wave(each: Tensor) -> Tensor:
    """Return numbers between -1 and 1 of both signs, in a tensor's shape: what cancels must not move alike."""
    steps = torch.arange(1, each.numel() + 1, dtype=torch.float64, device=each.device)
    return steps.sin().to(each).reshape(each.shape)


def _largest(each: Tensor) -> float:
    return float(each.abs().max()) if each.numel() else 0.0
