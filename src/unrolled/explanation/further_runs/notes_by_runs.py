"""Notes on explanations, made from further runs of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial

from torch import nn

from unrolled.explanation.explanation import Explanation
from unrolled.explanation.further_runs.behind_held import BehindHeld
from unrolled.explanation.further_runs.features_behind_held import features_behind_held, lacks_numbers
from unrolled.explanation.further_runs.first_states import first_states_read
from unrolled.explanation.further_runs.past_networks import PastNetworks
from unrolled.explanation.networks.find_network import FoundNetworks
from unrolled.explanation.notes import constants_note, initial_notes, ray_notes
from unrolled.explanation.request import Request
from unrolled.user_models.all_modules import all_modules

__all__ = ["NotesByRuns"]


@dataclass(frozen=True)
class NotesByRuns:
    """Notes on the explanations of one request. Each run is made once, and only where a note needs it."""

    model: nn.Module
    networks: FoundNetworks
    """Its networks."""
    asked: Request
    run: Callable[[], object]
    """Runs the model as it is."""
    examples: int
    """The number of explanations."""

    def of(self, found: Explanation) -> tuple[str, ...]:
        """Return the notes on one of the explanations."""
        classes = _classes(found)
        return (
            *constants_note(found, partial(self._numbers_read, classes)),
            *ray_notes(found, partial(self._read_at_zero, classes)),
            *initial_notes(found, lambda: self._first_states),
            *(self._behind_held.notes() if lacks_numbers(found, self.asked, self.examples) else ()),
        )

    @cached_property
    def _past(self) -> PastNetworks:
        modules = all_modules(self.model)
        return PastNetworks(self.model, [modules[path] for path in self.networks.paths], self.asked)

    @cached_property
    def _numbers_read(self) -> Callable[[tuple[int, ...]], bool]:
        return cache(self._past.numbers_read)

    @cached_property
    def _read_at_zero(self) -> Callable[[tuple[int, ...]], tuple[bool, list[str]]]:
        return cache(self._past.read_at_zero)

    @cached_property
    def _first_states(self) -> tuple[bool, list[str]]:
        return first_states_read(self.model, self.networks, self.asked)

    @cached_property
    def _behind_held(self) -> BehindHeld:
        return features_behind_held(self.model, self.networks, self.asked, self.run, self.examples)


def _classes(found: Explanation) -> tuple[int, ...]:
    """Return the classes that are explained; none where a function chose the output."""
    outputs = found.outputs
    both = () if outputs is None else (outputs.target, outputs.against)
    return tuple(each for each in both if each is not None)
