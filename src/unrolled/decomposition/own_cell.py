"""A step that a user wrote, as a cell: its module is called on blocks, whatever arguments it takes and returns.

The state is every tensor that a call returns, side by side. A call reads those parts of it that are arguments of the
next call; its other tensors are the input. A module needs no formula: forward mode differentiates its operations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unrolled.cells.base import Cell
from unrolled.cells.batch_layout import Layout
from unrolled.decomposition.eval_mode import eval_copy
from unrolled.decomposition.held_model import HeldModel
from unrolled.decomposition.step_calls import Place, StepCall, leaves, rebuilt, same_tensor
from unrolled.errors import RandomOperationError, ShapeError
from unrolled.held_forward.mode import Held, rule
from unrolled.held_forward.operands import carries

__all__ = ["STEPS", "OwnCell"]

STEPS = frozenset({"own_step"})
"""Operations that are steps of the user's own."""

ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-4}
"""How far a step that is run again may be from what it gave, relative to its size; 0.1 in other types."""


class OwnCell(Cell):
    """One call of a step as a cell.

    Args:
        call: The call.
        function: The step, with the weights that the module has now.
        inputs: Place and shape, without the batch, of each tensor of the input.
        parts: Place among the results and shape, without the batch, of each part of the state.
        read: For each part, the place among the arguments where it is read; None if it is not.
        others: The call's other tensors.
        batch: Number of rows.
    """

    name: ClassVar[str] = "own"

    def __init__(
        self,
        call: StepCall,
        function: Callable[..., Any],
        inputs: Sequence[tuple[Place, torch.Size]],
        parts: Sequence[tuple[Place, torch.Size]],
        read: Sequence[Place | None],
        others: Mapping[Place, Tensor],
        batch: int,
    ) -> None:
        part_sizes = [shape.numel() for _, shape in parts]
        super().__init__(max(1, sum(shape.numel() for _, shape in inputs)), sum(part_sizes))
        self.call, self.function, self.batch = call, function, batch
        self.inputs, self.parts, self.read, self.others = inputs, parts, read, others
        self.part_sizes = part_sizes

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Run the module on all leading axes as one batch."""
        lead = inputs.shape[:-1]
        rows = lead.numel()
        x, s = inputs.reshape(rows, self.input_size), state.reshape(rows, self.state_size)
        tensors = {place: self._repeated(each, rows) for place, each in self.others.items()}
        first = 0
        for place, shape in self.inputs:
            tensors[place] = x[:, first : first + shape.numel()].reshape(rows, *shape)
            first += shape.numel()
        first = 0
        for argument, (_, shape) in zip(self.read, self.parts, strict=True):
            if argument is not None:
                tensors[argument] = s[:, first : first + shape.numel()].reshape(rows, *shape)
            first += shape.numel()
        found = dict(leaves(self.call.run(tensors, self.function)))
        parts = [found[place].reshape(rows, size) for (place, _), size in zip(self.parts, self.part_sizes, strict=True)]
        # an empty part of the input: the result is a function of it, also where the step reads neither
        return torch.cat([*parts, x[:, :0]], dim=-1).reshape(*lead, self.state_size)

    def _repeated(self, each: Tensor, rows: int) -> Tensor:
        """Repeat what a call reads for each row, such as a mask, for more rows."""
        if rows == self.batch or each.dim() == 0 or each.shape[0] != self.batch or isinstance(each, nn.Parameter):
            return each
        return each.expand(rows // self.batch, *each.shape).reshape(rows, *each.shape[1:])


@rule("own_step")
def held_own_step(held: Held) -> Any:
    """Run one step as a layer of one cell."""
    call, tensors = held.args
    assert isinstance(held.mode, HeldModel)
    given = dict(zip(call.places, tensors, strict=True))
    with torch.no_grad():
        result = call.run({place: each.detach() for place, each in given.items()})
    found = dict(leaves(result))
    real = [each for each in (*given.values(), *found.values()) if _is_value(each)]
    known = [found[place] for place in call.form.state.values() if place in found] or list(found.values())
    if not real or not known:
        raise call.refusal("it takes and returns no tensors of real numbers")
    alone = all(each.dim() == 1 for each in real)
    batch = 1 if alone else len(known[0]) if known[0].dim() else 0

    def fits(each: Tensor) -> bool:
        return _is_value(each) and each.dim() > 0 and (alone or len(each) == batch)

    def features(each: Tensor) -> torch.Size:
        return each.shape if alone else each.shape[1:]

    inputs = [(place, features(each)) for place, each in given.items() if place not in call.form.state and fits(each)]
    others = {place: each for place, each in given.items() if place not in {*call.form.state, *dict(inputs)}}
    odd = [each for each in others.values() if carries(each)] + [
        e for e in found.values() if not fits(e) and e.is_floating_point()
    ]
    if odd:
        raise call.refusal(
            f"a tensor of shape {tuple(odd[0].shape)} does not have the batch of {batch} first; expected "
            "(batch, features)"
        )
    parts = _distinct({place: each for place, each in found.items() if fits(each)})
    part_of = {place: number for number, (_, places) in enumerate(parts) for place in places}
    read: list[Place | None] = [None] * len(parts)
    for place, then in call.form.state.items():
        if place in given:
            shape = given[place].shape
            if then not in part_of or found[then].shape != shape:
                raise call.refusal(f"a state of shape {tuple(shape)} is no part of what it returns")
            read[part_of[then]] = place
    cell = OwnCell(
        call,
        _with_weights_of_now(call),
        inputs,
        [(places[0], features(each)) for each, places in parts],
        read,
        {place: each.detach() for place, each in others.items()},
        batch,
    )
    x = _side_by_side([given[place] for place, _ in inputs], batch, known[0])
    start = torch.cat(
        [
            (torch.zeros_like(each) if place is None else given[place]).reshape(batch, -1)
            for (each, _), place in zip(parts, read, strict=True)
        ],
        dim=-1,
    )
    own = torch.cat([each.reshape(batch, -1) for each, _ in parts], dim=-1)
    _check_rows(call, cell, x.detach(), start.detach(), own)
    layout = Layout(torch.ones(batch, dtype=torch.int64, device="cpu"), 1, False, False, False, None)
    _, (final,) = held.mode.run_layers([[cell]], x[None], layout, [start], own[None])
    new = [part.reshape(each.shape) for part, (each, _) in zip(final.split(cell.part_sizes, -1), parts, strict=True)]
    return rebuilt(result, {place: new[number] for place, number in part_of.items()})


def _is_value(each: Tensor) -> bool:
    return each.is_floating_point() and not isinstance(each, nn.Parameter)


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


def _side_by_side(tensors: Sequence[Tensor], batch: int, like: Tensor) -> Tensor:
    """Put the tensors of an input side by side; a step without any reads a zero."""
    if not tensors:
        return like.new_zeros(batch, 1)
    return torch.cat([each.reshape(batch, -1) for each in tensors], dim=-1)


def _with_weights_of_now(call: StepCall) -> Callable[..., Any]:
    """Return the step of a copy of the module: a model may give it other weights before its next step."""
    if inspect.ismethod(call.function) and call.function.__self__ is call.module:
        copied = eval_copy(call.module)
        copied.__dict__.pop(call.form.method, None)
        function: Callable[..., Any] = call.function.__func__.__get__(copied)
        return function
    return call.function


@torch.no_grad()
def _check_rows(call: StepCall, cell: OwnCell, x: Tensor, state: Tensor, own: Tensor) -> None:
    """Refuse a step that mixes the rows of a batch, or that forward mode cannot differentiate; once for each shape."""
    shape = (x.shape, state.shape, x.dtype)
    if shape in call.form.tested:
        return
    call.form.tested.add(shape)
    before = torch.get_rng_state()
    steps = torch.arange(state.numel(), dtype=torch.float64, device=state.device)
    wave = 0.1 * steps.sin().to(state).reshape(state.shape)
    try:
        both = cell.step(torch.stack((x, x, 0.9 * x)), torch.stack((state, state + wave, state - wave)))
        apart = torch.stack((own, cell.step(x, state + wave), cell.step(0.9 * x, state - wave)))
        torch.func.jvp(cell.step, (x, state), (torch.ones_like(x), torch.ones_like(state)))
    except (RuntimeError, NotImplementedError, ShapeError, IndexError, TypeError, ValueError) as error:
        why = str(error).splitlines()[0][:150] if str(error) else type(error).__name__
        raise call.refusal(
            f"on a batch of {3 * cell.batch} rows, or under torch.func.jvp, it fails ({why}); write it for "
            "(batch, features)"
        ) from error
    if not torch.equal(torch.get_rng_state(), before):
        raise RandomOperationError(
            f"{call.path or 'the model'}.{call.form.method} of {type(call.module).__name__} draws random numbers at "
            "each evaluation, and an explanation takes several; switch that off when self.training is false"
        )
    gap, size = float((both - apart).nan_to_num().abs().max()), max(1.0, float(apart.nan_to_num().abs().max()))
    if not gap <= ROUNDING.get(x.dtype, 0.1) * size:
        raise call.refusal(f"a row of the batch changes another one, by {gap:.2g}; explain a batch of one")
