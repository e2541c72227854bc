"""The rule of a step that a user wrote: each call is a layer of one cell with one step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unrolled.cells.batch_layout import Layout
from unrolled.decomposition.eval_mode import eval_copy
from unrolled.decomposition.held_model import HeldModel
from unrolled.decomposition.layer_runs import NetworkCall
from unrolled.decomposition.nested_tensors import Place, leaves, rebuilt
from unrolled.decomposition.own_cell import OwnCell
from unrolled.decomposition.parity import Parity
from unrolled.decomposition.step_calls import MOST_OF_ERROR, StepCall, is_value, of_one_example, real_form, same_tensor
from unrolled.errors import RandomOperationError, first_line
from unrolled.held_forward.mode import HeldCall, rule
from unrolled.held_forward.operands import carries

__all__ = ["STEPS"]

_FEW = 1024
"""Up to so many numbers of another argument are compared."""
_MOVE = 2.0**-6
"""How far a step's numbers are moved, in relation, to see how large the sums are that it makes of them."""

STEPS = frozenset({"own_step"})
"""Operations that are steps of the user's own."""
ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-4}
"""How far a step that is run again may be from what it gave, relative to its size or its sums'; 0.1 in other types.

It is closer than :data:`unrolled.decomposition.parity.PARITY`: one step rounds less than a sequence of them.
"""


@rule("own_step")
def held_own_step(held: HeldCall) -> Any:
    """Run one step as a layer of one cell."""
    call, tensors = held.args
    assert isinstance(held.mode, HeldModel)
    given = dict(zip(call.places, tensors, strict=True))
    with torch.no_grad():
        result = call.run({place: each.detach() for place, each in given.items()})
    step = _Step(call, given, {place: real_form(each) for place, each in leaves(result)})
    step.check()
    batch, parts, read = step.batch, step.parts, step.read
    cell = OwnCell(
        call,
        _with_weights_of_now(call),
        [(place, step.features(each)) for place, each in step.inputs.items()],
        [(places[0], step.features(each)) for each, places in parts],
        read,
        {place: each.detach() for place, each in step.others.items()},
        batch,
        step.alone,
    )
    columns = [each.reshape(batch, -1) for each in step.inputs.values()]
    x = torch.cat(columns, dim=-1) if columns else step.known[0].new_zeros(batch, 1)  # a step without input reads 0
    first = [
        torch.zeros_like(each) if place is None else given[place] for (each, _), place in zip(parts, read, strict=True)
    ]
    start = torch.cat([each.reshape(batch, -1) for each in first], dim=-1)
    own = torch.cat([each.reshape(batch, -1) for each, _ in parts], dim=-1)
    cell.rows_apart |= _mixes_rows(step, cell, x.detach(), start.detach(), own)
    layout = Layout(torch.ones(batch, dtype=torch.int64, device="cpu"), 1)
    _, (final,) = held.mode.run_network(NetworkCall([[cell]], x[None], layout, [start], own[None]))
    columns_of_parts = zip(final.split(cell.part_sizes, -1), parts, strict=True)
    new = [column.reshape(each.shape).clone() for column, (each, _) in columns_of_parts]  # as view_as_complex asks
    return rebuilt(result, {place: new[number] for place, number in step.part_of.items()})


@dataclass(frozen=True)
class _Step:
    """The tensors of one call: those of its input, those of its state, and others."""

    call: StepCall
    given: Mapping[Place, Tensor]
    """Among the arguments."""
    found: Mapping[Place, Tensor]
    """Among the results."""

    @cached_property
    def known(self) -> list[Tensor]:
        """The next state, as far as the results hold it; else all results."""
        state = [self.found[place] for place in self.call.form.state.values() if place in self.found]
        return state or list(self.found.values())

    @cached_property
    def alone(self) -> bool:
        """Whether no tensor has an axis of examples."""
        return of_one_example([*self.given.values(), *self.found.values()])

    @cached_property
    def batch(self) -> int:
        """Number of examples."""
        return 1 if self.alone else len(self.known[0]) if self.known[0].dim() else 0

    def fits(self, each: Tensor) -> bool:
        """Tell whether a tensor has the examples first."""
        return is_value(each) and each.dim() > 0 and (self.alone or len(each) == self.batch)

    def features(self, each: Tensor) -> torch.Size:
        """Return the shape of a tensor without the axis of examples."""
        return each.shape if self.alone else each.shape[1:]

    @cached_property
    def inputs(self) -> dict[Place, Tensor]:
        """The arguments that are the input."""
        state = self.call.form.state
        return {place: each for place, each in self.given.items() if place not in state and self.fits(each)}

    @cached_property
    def others(self) -> dict[Place, Tensor]:
        """The arguments that are neither input nor state."""
        state = self.call.form.state
        return {p: e for p, e in self.given.items() if (p not in state and p not in self.inputs) or p in self.replaced}

    @cached_property
    def replaced(self) -> frozenset[Place]:
        """Where a state of zeros has another shape than the next one: the step begins with zeros of its own."""
        state = {
            place: then for place, then in self.call.form.state.items() if place in self.given and then in self.found
        }
        other = (place for place, then in state.items() if self.given[place].shape != self.found[then].shape)
        return frozenset(place for place in other if not bool(self.given[place].count_nonzero()))

    @cached_property
    def parts(self) -> list[tuple[Tensor, list[Place]]]:
        """The parts of the state, each with its places among the results."""
        return _distinct({place: each for place, each in self.found.items() if self.fits(each)})

    @cached_property
    def part_of(self) -> dict[Place, int]:
        """The number of the part at each place among the results."""
        return {place: number for number, (_, places) in enumerate(self.parts) for place in places}

    @cached_property
    def read(self) -> list[Place | None]:
        """For each part, the place among the arguments where it is read; None if it is not."""
        found: list[Place | None] = [None] * len(self.parts)
        for place, then in self.call.form.state.items():
            if place in self.given and place not in self.replaced:
                shape = self.given[place].shape
                if then not in self.part_of or self.found[then].shape != shape:
                    raise self.call.refusal(f"it reads a state of shape {tuple(shape)} and returns no such state")
                found[self.part_of[then]] = place
        return found

    def check(self) -> None:
        """Refuse a call that takes or returns what no cell can.

        Raises:
            UnsupportedOperationError: If it does.
        """
        if not self.known or not any(map(is_value, (*self.given.values(), *self.found.values()))):
            raise self.call.refusal("it takes and returns no tensors of real numbers")
        odd = [each for each in self.others.values() if carries(each)]
        odd += [each for each in self.found.values() if each.is_floating_point() and not self.fits(each)]
        if odd:
            raise self.call.refusal(
                f"a tensor of shape {tuple(odd[0].shape)} does not have the batch of {self.batch} first; expected "
                "(batch, features)"
            )


def _distinct(found: Mapping[Place, Tensor]) -> list[tuple[Tensor, list[Place]]]:
    """Group the places of results that are one tensor: many cells return h twice."""
    groups: list[tuple[Tensor, list[Place]]] = []
    for place, each in found.items():
        for one, places in groups:
            if same_tensor(one, each):
                places.append(place)
                break
        else:
            groups.append((each, [place]))
    return groups


def _with_weights_of_now(call: StepCall) -> Callable[..., Any]:
    """Return the step of a copy of the module: a model may give it other weights before its next step."""
    if inspect.ismethod(call.function) and call.function.__self__ is call.module:
        copied = eval_copy(call.module)
        copied.__dict__.pop(call.form.method, None)
        function: Callable[..., Any] = call.function.__func__.__get__(copied)
        return function
    return call.function


def _mixes_rows(step: _Step, cell: OwnCell, x: Tensor, state: Tensor, own: Tensor) -> bool:
    """Tell whether the rows of a batch change each other; refuse such a step of several examples."""
    # The answer is kept for calls of the same shapes and other arguments: a call that reads no state mixes none, and
    # another graph may join other rows. A step that fails on more rows than one is like one that mixes them.
    call = step.call
    others = tuple((place, _identity(each)) for place, each in step.others.items())
    plain = tuple(each for each in call.bound.arguments.values() if isinstance(each, bool | int | float | str | None))
    kind = (x.shape, state.shape, x.dtype, call.places, others, plain)
    if kind not in call.form.mixes:
        why = _mixed_rows(call, cell, x, state, own)
        if why and len(x) > 1:
            raise call.refusal(why)
        call.form.mixes[kind] = bool(why)
    return call.form.mixes[kind]


def _identity(other: Tensor) -> tuple[Any, ...]:
    """Return what tells another argument from the next one: its numbers, or of many where they lie."""
    if other.numel() > _FEW:
        return (other.data_ptr(), other._version, other.shape)
    return tuple(other.reshape(-1).tolist())


@torch.no_grad()
def _mixed_rows(call: StepCall, cell: OwnCell, x: Tensor, state: Tensor, own: Tensor) -> str:
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
    precision, parts = ROUNDING.get(x.dtype, 0.1), cell.part_sizes
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
