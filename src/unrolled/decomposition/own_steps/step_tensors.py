"""The tensors of one call of a step that a user wrote: those of its input, those of its state, and others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from unrolled.decomposition.own_steps.step_calls import StepCall, is_value, of_one_example, same_tensor
from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.operations.operands import carries
from unrolled.model_runs.nested_tensors import Place

__all__ = ["StepTensors"]


@dataclass(frozen=True)
class StepTensors:
    """The tensors of one call, by what a cell takes them for."""

    call: StepCall
    given: Mapping[Place, Tensor]
    """Among the arguments."""
    found: Mapping[Place, Tensor]
    """Among the results."""
    stacked: bool = False
    """Whether states of three axes and more have the examples second, as torch's: (layers, examples, units)."""
    shared: frozenset[Place] = frozenset()
    """Arguments that all examples read, and whose first axis happens to be as long as there are examples."""

    @cached_property
    def known(self) -> list[Tensor]:
        """The next state, as far as the results hold it; else all results."""
        state = [self.found[place] for place in self.call.form.state.values() if place in self.found]
        return state or list(self.found.values())

    @property
    def forms(self) -> list[StepTensors]:
        """The forms in which the call may be a cell: the one that opened such a call first, then the likeliest."""
        likely = self._is_stacked
        either = [replace(self, stacked=each) for each in ((False,) if likely is None else (likely, not likely))]
        opened = self.call.form.opened.get(self._shapes)
        return sorted((*either, *self._with_shared), key=lambda form: (form.stacked, form.shared) != opened)

    def remember_form(self) -> None:
        """Keep for calls of the same shapes that this form opened."""
        self.call.form.opened[self._shapes] = (self.stacked, self.shared)

    @property
    def _shapes(self) -> tuple[tuple[Place, torch.Size], ...]:
        return tuple((place, each.shape) for place, each in self.given.items())

    @property
    def _is_stacked(self) -> bool | None:
        """Whether the examples are likelier second than first in the state; None if they can only be first."""
        examples = {each.shape[1] for each in self.known if each.dim() > 2}
        form = self.call.form
        beside = {place: each for place, each in self.given.items() if place not in form.state and each.dim()}
        as_many = {place: each for place, each in beside.items() if len(each) in examples}
        if len(examples) != 1 or not as_many:
            return None
        read = {place: each for place, each in beside.items() if place not in form.constants}
        if self.batch == 1:  # one layer, or one example: then other tensors of several axes have one example as well
            return _reads(as_many.values()) and all(each.dim() < 3 for each in beside.values() if len(each) == 1)
        return _reads(each for place, each in as_many.items() if place in read) and all(
            len(each) != self.batch for each in read.values()
        )

    @property
    def _with_shared(self) -> list[StepTensors]:
        """The same with arguments that all examples read, such as a graph of as many nodes as there are examples."""
        # of one example nothing tells them apart: what is repeated for more rows is broadcast
        places = list(self.inputs) if self.batch > 1 else []
        chosen = [places[1:], *([place] for place in (*places[1:], *places[:1]))]
        return [
            replace(self, shared=each) for each in dict.fromkeys(map(frozenset, chosen)) if 0 < len(each) < len(places)
        ]

    @cached_property
    def alone(self) -> bool:
        """Whether no tensor has an axis of examples."""
        return not self.stacked and of_one_example([*self.given.values(), *self.found.values()])

    @cached_property
    def batch(self) -> int:
        """Number of examples."""
        if self.stacked:
            return next(each.shape[1] for each in self.known if each.dim() > 2)
        return 1 if self.alone else len(self.known[0]) if self.known[0].dim() else 0

    def axis(self, each: Tensor) -> int:
        """Return the axis of the examples: of stacked states the second one."""
        state = self.call.form.state
        of_state = [each for place, each in self.given.items() if place in state] + self.known
        return int(self.stacked and each.dim() > 2 and any(each is one for one in of_state))

    def fits(self, each: Tensor) -> bool:
        """Tell whether a tensor has as many examples as the others, on its axis of them."""
        return is_value(each) and each.dim() > 0 and (self.alone or each.shape[self.axis(each)] == self.batch)

    def features(self, each: Tensor) -> torch.Size:
        """Return the shape of a tensor without the axis of examples."""
        axis = self.axis(each)
        return each.shape if self.alone else each.shape[:axis] + each.shape[axis + 1 :]

    def columns(self, each: Tensor) -> Tensor:
        """Return the numbers of a tensor as a row for each example."""
        return each.movedim(self.axis(each), 0).reshape(self.batch, -1)

    def from_columns(self, rows: Tensor, each: Tensor) -> Tensor:
        """Return rows of numbers in the shape of a tensor."""
        if self.alone:
            return rows.reshape(each.shape)
        return rows.reshape(self.batch, *self.features(each)).movedim(0, self.axis(each))

    @cached_property
    def inputs(self) -> dict[Place, Tensor]:
        """The arguments that are the input."""
        state = self.call.form.state
        beside = {place: each for place, each in self.given.items() if place not in state and place not in self.shared}
        return {place: each for place, each in beside.items() if self.fits(each)}

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
                if (other := found[self.part_of[then]]) is not None:
                    raise self._two_states(other, place)
                found[self.part_of[then]] = place
        return found

    def _two_states(self, one: Place, other: Place) -> UnsupportedOperationError:
        """Return the error for two arguments that hold one result, as those to the left and above in an image."""
        path, method, name = self.call.path, self.call.form.method, one[0]
        if name == other[0]:
            return self.call.refusal(
                "it returns one tensor as two parts of its state; return a copy as one of them: .clone()"
            )
        return self.call.refusal(
            f"{name} and {other[0]} hold the same result of earlier calls; name the one that is its state: "
            f"rnn=unrolled.as_cell({path!r}, method={method!r}, state={name!r})"
        )

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


def _reads(tensors: Iterable[Tensor]) -> bool:
    """Tell whether any may be what a step reads: a vector of numbers may be one of channels, as rates of decay are."""
    return any(each.dim() > 1 or not each.is_floating_point() for each in tensors)


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
