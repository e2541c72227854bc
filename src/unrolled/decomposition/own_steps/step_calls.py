"""Calls of a step that a user wrote, as operations of a mode: what it receives, what it returns, where its state is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import handle_torch_function

from unrolled.errors import ParityError, UnsupportedOperationError
from unrolled.held_forward.held_only import HeldOnlyError
from unrolled.model_runs.nested_tensors import Place, leaves, rebuilt
from unrolled.user_models.all_modules import all_modules
from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = [
    "MOST_OF_ERROR",
    "StepCall",
    "StepForm",
    "changed_arguments_named",
    "is_value",
    "of_one_example",
    "own_step",
    "real_form",
    "same_tensor",
    "steps_as_operations",
]

MOST_OF_ERROR = 150
"""Characters of a step's own error that a refusal repeats."""


@dataclass(frozen=True)
class StepForm:
    """How a module takes its state, and how it returns it."""

    method: str
    """The method that is one step: ``"forward"``, ``"step"``, …"""
    state: Mapping[Place, Place]
    """For each tensor of the state among the arguments: where the next one stands among the results."""
    inside: tuple[str, ...] = ()
    """Paths of the steps and cells that it calls itself."""
    constants: frozenset[Place] = frozenset()
    """The arguments that are the same tensor in all of several calls."""
    mixes: dict[Any, bool] = field(default_factory=dict, compare=False)
    """Whether rows change each other, by the shapes of calls that were tried."""
    opened: dict[Any, tuple[bool, frozenset[Place]]] = field(default_factory=dict, compare=False)
    """Whether the examples stand second in the state, and what all read, by the shapes of calls that were opened."""
    unreturned: set[str] = field(default_factory=set, compare=False)
    """Names of the arguments that calls changed in place and did not return."""


def real_form(each: Tensor) -> Tensor:
    """Return complex numbers as pairs of numbers, and any other tensor as it is."""
    return torch.stack((each.real, each.imag), dim=-1) if each.is_complex() else each


def same_tensor(one: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors are the same numbers in memory."""
    return one is other or (
        one.numel() > 0
        and one.data_ptr() == other.data_ptr()
        and one.shape == other.shape
        and one.stride() == other.stride()
    )


def is_value(each: Tensor) -> bool:
    """Tell whether a tensor holds numbers that are no parameter."""
    return each.is_floating_point() and not isinstance(each, nn.Parameter)


def of_one_example(tensors: Iterable[Tensor]) -> bool:
    """Tell whether a step takes no axis of examples: all are vectors, or columns of different heights."""
    values = list(filter(is_value, tensors))
    if all(each.dim() == 1 for each in values):
        return True
    return all(each.shape[1:] == (1,) for each in values) and len(set(map(len, values))) > 1


@dataclass(frozen=True)
class StepCall:
    """One call of a step."""

    path: str
    module: nn.Module
    form: StepForm
    function: Callable[..., Any]
    bound: inspect.BoundArguments
    places: tuple[Place, ...]
    """The places of the tensors among the arguments. Complex numbers are given as pairs of numbers."""
    written: dict[Place, Place | None] = field(default_factory=dict)
    """The arguments that the step changes in place: where each stands among the results, if it is one of them."""

    def run(self, tensors: Mapping[Place, Tensor], function: Callable[..., Any] | None = None) -> Any:
        """Run the step on other tensors."""
        bound = inspect.BoundArguments(self.bound.signature, rebuilt(self.bound.arguments, tensors))
        return (self.function if function is None else function)(*bound.args, **bound.kwargs)

    def run_on_copies(self, tensors: Mapping[Place, Tensor]) -> Any:
        """Run the step as it is on copies, and note which of them it changes in place.

        Raises:
            UnsupportedOperationError: If it changes a state that it does not return.
        """
        pairs = {place for place, each in leaves(self.bound.arguments) if each.is_complex()}
        copies = {place: _copy(each, place in pairs) for place, each in tensors.items()}
        result = self.run(copies)
        for place, copy in copies.items():
            if _is_written(copy, tensors[place]):
                then = self.written[place] = self._place_of(copy, dict(leaves(result)))
                if then is not None or not _is_changed(copy, tensors[place]):
                    continue
                if place in self.form.state:
                    raise self.refusal(
                        f"it changes {place[0]} in place and returns other numbers; compute a new tensor instead"
                    )
                self.form.unreturned.add(str(place[0]))
        return result

    def _place_of(self, written: Tensor, results: Mapping[Place, Tensor]) -> Place | None:
        """Find an argument that was written among the results, by its memory or by its numbers.

        None of an input that is not returned, as an activation in place writes it: the caller's own stays as it was.
        """
        for same in (same_tensor, torch.equal):
            if (found := next((then for then, each in results.items() if same(written, each)), None)) is not None:
                return found
        return None

    def refusal(self, why: str) -> UnsupportedOperationError:
        """Return the error for a step that cannot be opened."""
        steps = self.form.inside[0] if len(self.form.inside) == 1 else list(self.form.inside)
        inside = f"; or open the steps inside it: rnn={steps!r}" if steps else ""
        return UnsupportedOperationError(
            f"{self.path or 'the model'}.{self.form.method} of {type(self.module).__name__} is no step that can be "
            f"opened: {why}{inside}"
        )


def own_step(call: StepCall, tensors: Sequence[Tensor]) -> Any:
    """Run one step as it is."""
    return call.run_on_copies(dict(zip(call.places, tensors, strict=True)))


def _copy(each: Tensor, is_pairs: bool) -> Tensor:
    """Copy a tensor that a step may change; pairs of numbers become the complex numbers that they stand for."""
    if isinstance(each, nn.Parameter):
        return each
    return torch.complex(*each.unbind(-1)) if is_pairs else each.clone()


def _is_written(copy: Tensor, before: Tensor) -> bool:
    """Tell whether a copy was written to, with other numbers or the same; inference mode shows other numbers only."""
    return copy is not before and (_is_changed(copy, before) if copy.is_inference() else copy._version > 0)


def _is_changed(copy: Tensor, before: Tensor) -> bool:
    """Tell whether a copy has other numbers than the tensor that it was made of."""
    return not torch.equal(real_form(copy), before)


@contextmanager
def steps_as_operations(model: nn.Module, forms: Mapping[str, StepForm]) -> Iterator[None]:
    """Make each call of these steps one operation of a mode, until the end of the block."""
    modules = all_modules(model)
    steps = ((modules[path], form.method, _stand_in(path, modules[path], form)) for path, form in forms.items())
    with replaced_attributes(steps):
        yield


@contextmanager
def changed_arguments_named(forms: Mapping[str, StepForm]) -> Iterator[None]:
    """Let an error name what steps change in place and do not return: a held run has it as it was before."""
    try:
        yield
    except (ParityError, HeldOnlyError) as error:
        changed = [f"{path}.{form.method} changes {name}" for path, form in forms.items() for name in form.unreturned]
        if not changed:
            raise
        raise type(error)(
            f"{' and '.join(sorted(changed))} in place and does not return it; if the model reads it again, compute a "
            f"new tensor instead ({error})"
        ) from error


def _with_writes(call: StepCall, found: Mapping[Place, Tensor], result: Any) -> Any:
    """Write results into the arguments that a step changes in place; the result holds these arguments."""
    results = dict(leaves(result))
    returned = {place: then for place, then in call.written.items() if then is not None}
    for place, then in returned.items():
        found[place].copy_(results[then])
    return rebuilt(result, {then: found[place] for place, then in returned.items()})


def _stand_in(path: str, module: nn.Module, form: StepForm) -> Callable[..., Any]:
    """A method that a mode meets as one operation."""
    function = getattr(module, form.method)
    signature = inspect.signature(function)

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        if not torch._C._len_torch_function_stack():
            return function(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        found = dict(leaves(bound.arguments))
        call = StepCall(path, module, form, function, bound, tuple(found))
        tensors = [real_form(each) for each in found.values()]
        result = handle_torch_function(own_step, tensors, call, tensors)
        return _with_writes(call, found, result) if call.written else result

    return stand_in
