"""Find the steps that users wrote themselves: modules that a model calls in a loop, with their own state.

A model is run once, and the calls of its methods are noted. A step is a method that receives what it returned at an
earlier call, or that names such an argument: ``forward(x, state)``, ``forward(x, h, c)``, ``step(x, state)``.
"""

from __future__ import annotations

import inspect
import re
import types
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.overrides import BaseTorchFunctionMode

from unrolled.cells.recurrent import Recurrent
from unrolled.decomposition.own_steps.step_calls import StepForm, same_tensor
from unrolled.explanation.networks.as_cell import CellAdapter
from unrolled.held_forward.all_modules import all_buffers, all_modules, all_parameters, is_within
from unrolled.held_forward.operations.operands import holds_numbers
from unrolled.held_forward.replaced_attributes import replaced_attributes
from unrolled.model_runs.nested_tensors import Place, leaves

__all__ = ["SeenStep", "found_steps", "named_step", "seen_steps"]

_WORDS = (
    "h c s m z hc hx cx state states hidden hiddens cell memory mem carry context hiddenstate cellstate rnn".split()
)
"""What a parameter that is a state is called."""
_TIMES = "prev previous last old t tm past before in init initial zero pre the of and".split()
"""What may stand beside that, to say which state it is."""
_OF_MODULES = frozenset(vars(nn.Module))
"""Names of torch's own, none of which is a user's step."""


@dataclass
class SeenStep:
    """A method as one run of the model called it."""

    path: str
    module: nn.Module
    method: str
    parameters: tuple[str, ...]
    calls: list[tuple[dict[Place, Tensor], dict[Place, Tensor]]] = field(default_factory=list)
    """The tensors that each call received, and those that it returned."""

    @property
    def receives_its_own(self) -> bool:
        """Whether an argument is a result of an earlier call, as it is."""
        return bool(self._flows()[0])

    def inside(self, other: SeenStep) -> bool:
        """Tell whether this is a part of another one's module, or another method of it."""
        return self is not other and is_within(self.path, other.path)

    def form(self, names: Sequence[str] = (), asked: bool = False, adapted: bool = False) -> StepForm | None:
        """Find the state among the arguments and results.

        Args:
            names: Parameters that are the state; none to find them.
            asked: Whether a user says that this is a step: then one call is enough.
            adapted: Whether that was said by :func:`as_cell`: then its input may look like a sequence.
        """
        flows, then = self._flows()
        highest = max(flows.values(), default=0)
        state = {place: then[place] for place, count in flows.items() if count == highest}
        received = list(dict.fromkeys(place for given, _ in self.calls for place in given))
        if names:
            state = {place: result for place, result in then.items() if place[0] in names}
            wanted = [place for place in received if place[0] in names]
        else:
            state = self._without_inputs(state, received)
            wanted = [place for place in received if _is_state(str(place[0]))]
        state |= self._by_shape([place for place in wanted if place not in state], set(state.values()))
        stated = all(name in self.parameters for name in names) and any(map(_is_state, names or self.parameters))
        if not (state or (asked and len(self.calls) == 1 and (stated or names))):
            return None
        if not adapted and self._reads_sequences(state):
            return None
        if not asked and (len(self.calls) < 2 or not self._varies([p for p in received if p not in state])):
            return None
        beside = (place for place in received if place not in state)
        constants = frozenset(place for place in beside if len(self.calls) > 1 and not self._varies([place]))
        return StepForm(self.method, state, constants=constants)

    def remembered(self, state: Mapping[Place, Place]) -> int:
        """Count the tensors of a state: what it keeps twice counts once, and a counter does not count."""
        kept: list[Tensor] = []
        for place, then in state.items():
            calls = [
                (given[place], results[then]) for given, results in self.calls if place in given and then in results
            ]
            last = calls[-1][1] if calls else torch.empty(0, device="cpu")
            if not _only_counts(calls) and not any(same_tensor(last, each) for each in kept):
                kept.append(last)
        return len(kept)

    def _flows(self) -> tuple[Counter[Place], dict[Place, Place]]:
        """Count how often each argument is a result of an earlier call, and say which one."""
        counts: Counter[Place] = Counter()
        then: dict[Place, Place] = {}
        returned: list[tuple[Place, Tensor]] = []
        for given, results in self.calls:
            for place, each in given.items():
                found = next((where for where, result in reversed(returned) if same_tensor(each, result)), None)
                if found is not None and holds_numbers(each):
                    counts[place] += 1
                    then.setdefault(place, found)
            returned += results.items()
        return counts, then

    def _without_inputs(self, state: dict[Place, Place], received: Sequence[Place]) -> dict[Place, Place]:
        """Leave one argument as the input where a model feeds the output back as well."""
        if any(place not in state for place in received) or len({place[0] for place in state}) < 2:
            return state
        named = {place: then for place, then in state.items() if _is_state(str(place[0]))}
        return named or {place: then for place, then in state.items() if place[0] != self.parameters[0]}

    def _by_shape(self, places: Sequence[Place], taken: set[Place]) -> dict[Place, Place]:
        """Pair arguments with results of their shapes, the last results first: an output stands before the state."""
        found: dict[Place, Place] = {}
        for place in reversed(places):
            for given, results in self.calls:
                if place in given:
                    free = [w for w, r in results.items() if r.shape == given[place].shape and w not in taken]
                    if free:
                        found[place] = free[-1]
                        taken.add(free[-1])
                    break
        return found

    def _reads_sequences(self, state: Mapping[Place, Place]) -> bool:
        """Tell whether its first input has the three axes of a batch of sequences, as that of a whole network."""
        for given, results in self.calls:
            for place, each in given.items():
                if place not in state and each.is_floating_point():
                    return each.dim() == 3 and not _has_places(each, state, results)
        return False

    def _varies(self, places: Iterable[Place]) -> bool:
        """Tell whether an argument is another one from call to call."""
        for place in places:
            values = [given[place] for given, _ in self.calls if place in given]
            if any(not same_tensor(values[0], each) for each in values[1:]):
                return True
        return False


def _has_places(read: Tensor, state: Mapping[Place, Place], results: Mapping[Place, Tensor]) -> bool:
    """Tell whether a step returns a state, and nothing else, for each node of a graph or each place of channels."""

    def of_places(each: Tensor) -> bool:
        nodes = each.shape[:2] == read.shape[:2]
        return each.dim() == 3 and (nodes or (each.shape[::2] == read.shape[::2] and each.shape[1] > 1))

    return set(results) == set(state.values()) and all(map(of_places, results.values()))


def _only_counts(calls: Sequence[tuple[Tensor, Tensor]]) -> bool:
    """Tell whether all calls add one number to a tensor, or none."""
    if any(given.shape != result.shape or same_tensor(given, result) for given, result in calls):
        return False  # what is changed in place may have been any number
    added = [change for given, result in calls for change in (result - given).flatten().tolist()]
    return len(calls) > 1 and len(set(added)) == 1


def _is_state(name: str) -> bool:
    """Tell whether a parameter is called as states are: ``h``, ``prev_state``, ``hidden``, ``c_t``, ``hprev``."""
    words = [word for word in re.split(r"[_\d]+", name.lower()) if word and word not in _TIMES]
    bare = [re.sub(r"^(prev|last|old)|(prev|last|old|tm|t)$", "", word) or word for word in words]
    return bool(words) and all(word in _WORDS or short in _WORDS for word, short in zip(words, bare, strict=True))


def seen_steps(
    model: nn.Module,
    run: Callable[[], object],
    adapters: Iterable[CellAdapter] = (),
    owned: Collection[nn.Module] = (),
) -> list[SeenStep]:
    """Run a model once, and list the methods that may be a step.

    Args:
        model: The model.
        run: Runs it.
        adapters: Methods that a user named.
        owned: Networks by their class that are the user's own.
    """
    wanted = [(each.module, each.method) for each in adapters]
    candidates = []
    for path, module in all_modules(model).items():
        asked = {method for which, method in wanted if which is module or which == path}
        known = isinstance(module, Recurrent | nn.RNNBase | nn.RNNCellBase) and module not in owned
        methods = () if known else _methods(module)
        for method in (*asked, *(name for name in methods if name not in asked)):
            parameters = _parameters(module, method)
            if len(parameters) > 1 or (method in asked and parameters):
                candidates.append(SeenStep(path, module, method, parameters))
    with _noting_calls(candidates):
        run()
    # what has no parameter, such as a neuron that leaks at a fixed rate, is a step only if it receives its own result
    return [e for e in candidates if e.calls and (all_parameters(e.module) or e.receives_its_own)]


def found_steps(seen: Sequence[SeenStep]) -> dict[str, StepForm]:
    """Return the steps among the methods that were seen, by path; of nested ones those that are called most often.

    Where a step calls one other step each time, as for zoneout, the outer one is the cell. Where it calls several, it
    is a stack.
    """
    forms = [(each, form) for each in seen if (form := each.form()) is not None]
    dropped: list[SeenStep] = []
    for outer, _ in forms:
        if outer in dropped:
            continue
        inner = [each for each, _ in forms if each.inside(outer) and each not in dropped]
        # what a module of its own receives back unchanged is a state; by its name alone it may be that of the outer one
        sure = [each for each in inner if each.receives_its_own or not outer.receives_its_own]
        same = [each for each in inner if outer.inside(each)]  # another method of the same module
        below = {each.path for each in sure if each not in same}
        if any(len(each.calls) > len(outer.calls) for each in inner) or len(below) > 1:
            dropped.append(outer)
        else:
            dropped += inner
    return {each.path: _with_steps_inside(form, each, seen) for each, form in forms if each not in dropped}


def named_step(seen: Sequence[SeenStep], path: str, adapter: CellAdapter | None) -> dict[str, StepForm]:
    """Return the step that a user named, or the steps inside the module that was named."""
    here = [each for each in seen if each.path == path]
    if adapter is not None:
        here = [each for each in here if each.method == adapter.method]
    for each in sorted(here, key=lambda each: -len(each.calls)):
        form = each.form(adapter.state if adapter else (), asked=True, adapted=adapter is not None)
        if form is not None:
            return {path: _with_steps_inside(form, each, seen)}
    return {each: form for each, form in found_steps(seen).items() if is_within(each, path)}


def _with_steps_inside(form: StepForm, step: SeenStep, seen: Sequence[SeenStep]) -> StepForm:
    """Keep the paths of the steps and cells that a step calls: they may open where it does not."""
    own = (each.path for each in seen if each.path != step.path and each.inside(step) and each.form() is not None)
    parts = all_modules(step.module).items()
    cells = (f"{step.path}.{name}".strip(".") for name, each in parts if isinstance(each, nn.RNNCellBase))
    return replace(form, inside=tuple(dict.fromkeys((*own, *cells))))


def _methods(module: nn.Module) -> Iterator[str]:
    """List the methods of a user's module that may be a step."""
    kind = type(module)
    if kind.__module__.startswith("torch.") or isinstance(module, torch.jit.ScriptModule):
        return
    # most have one of their own: only others are searched for kept ones
    if next(module.parameters(), None) is None and not (all_parameters(module) or all_buffers(module)):
        return
    names = dict.fromkeys(name for base in reversed(kind.__mro__) for name in vars(base))
    of_keras = kind.forward.__module__.startswith("keras.")  # which calls ``call``
    for name in names:
        may_be = name == "forward" or (name == "call" and of_keras)
        may_be |= "step" in name.lower() and name not in _OF_MODULES
        if may_be and isinstance(inspect.getattr_static(module, name, None), types.FunctionType):
            yield name


def _parameters(module: nn.Module, method: str) -> tuple[str, ...]:
    """Return the names of a method's parameters, none if it has no signature."""
    try:
        parameters = inspect.signature(getattr(module, method)).parameters
    except (TypeError, ValueError, AttributeError):
        return ()
    return tuple(parameters)


@contextmanager
def _noting_calls(candidates: Sequence[SeenStep]) -> Iterator[None]:
    """Note the calls of methods until the end of the block."""
    stand_ins = ((each.module, each.method, _noted(each)) for each in candidates)
    with replaced_attributes(stand_ins), BaseTorchFunctionMode():  # under a mode torch.vmap is a loop
        yield


def _noted(step: SeenStep) -> Callable[..., Any]:
    function = getattr(step.module, step.method)
    signature = inspect.signature(function)

    def noted(*args: Any, **kwargs: Any) -> Any:
        try:
            given: Mapping[str, Any] = signature.bind(*args, **kwargs).arguments
        except TypeError:  # which the function says better
            return function(*args, **kwargs)
        received = dict(leaves(given))
        result = function(*args, **kwargs)
        returned = dict(leaves(result))
        if not any(map(is_functorch_wrapped_tensor, (*received.values(), *returned.values()))):  # which has no memory
            step.calls.append((received, returned))
        return result

    return noted
