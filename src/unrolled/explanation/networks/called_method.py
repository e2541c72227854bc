"""A method as one run of a model called it: whether it is a step, and where its state stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from unrolled.decomposition.own_steps.step_calls import StepForm, same_tensor
from unrolled.held_forward.operations.operands import holds_numbers
from unrolled.model_runs.nested_tensors import Place
from unrolled.user_models.all_modules import is_within

__all__ = ["CalledMethod"]

_WORDS = (
    "h c s m z hc hx cx state states hidden hiddens cell memory mem carry context hiddenstate cellstate rnn".split()
)
"""What a parameter that is a state is called."""
_TIMES = "prev previous last old t tm past before in init initial zero pre the of and".split()
"""What may stand beside that, to say which state it is."""
_ALSO_INPUTS = frozenset("s m z".split())
"""Which of these are also names of inputs: of features of a series, a mask, a candidate state."""


@dataclass
class CalledMethod:
    """A method of a module as one run of the model called it; it may be a step."""

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

    def inside(self, other: CalledMethod) -> bool:
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
            wanted = [p for p in received if _is_state(str(p[0])) and not (state and self._may_be_input(p, flows))]
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

    def _may_be_input(self, place: Place, flows: Mapping[Place, int]) -> bool:
        """Whether a name alone says that an argument is a state, and it is the name of an input as well.

        A state of that name begins with zeros, also where a model changes it between the calls.
        """
        first = next(given[place] for given, _ in self.calls if place in given)
        return place not in flows and place[0] in _ALSO_INPUTS and bool(first.count_nonzero())

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
