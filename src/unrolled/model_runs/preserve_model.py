"""Leave a model and its arguments as they were, whatever is run in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from unrolled.held_forward.custom_functions import custom_functions_followed
from unrolled.held_forward.outside.handed_over import work_of_threads_met
from unrolled.held_forward.outside.numbers_from_outside import note_what_modules_keep
from unrolled.held_forward.outside.other_threads import look_ups_noted
from unrolled.held_forward.rules.scripted import scripts_as_operations
from unrolled.model_runs.eval_mode import eval_mode
from unrolled.model_runs.maps_as_loops import maps_as_loops
from unrolled.model_runs.model_state import ModelState
from unrolled.model_runs.padded_encoders import padded_encoders
from unrolled.model_runs.random_generators import RandomGenerators, checked_seed
from unrolled.model_runs.unchanged_weights import UnchangedWeights
from unrolled.model_runs.without_backward_hooks import without_backward_hooks
from unrolled.model_runs.without_checkpoints import without_checkpoints
from unrolled.user_models.this_thread import ONE_THREAD, in_this_thread

__all__ = ["end_run", "preserved"]


class _Runs:
    """The runs of a model, each from one state."""

    def __init__(
        self, weights: UnchangedWeights, state: ModelState, generators: RandomGenerators, seed: int | None
    ) -> None:
        self._weights, self._state, self._generators, self._seed = weights, state, generators, seed
        self._depth = 0  # a recursive model calls itself

    def start(self, *_: object) -> None:
        """Restore the model before a run of it."""
        if not self._depth:
            self._state.restore(between_runs=True)
            self._generators.start_run(self._seed)
            self._weights.run_starts()
            note_what_modules_keep()
        self._depth += 1

    def stop(self, _model: nn.Module, _given: object, found: object) -> None:
        """Note that a call of the model ends; one that fails gives None."""
        self._depth = max(self._depth - 1, 0)  # of a model that catches everything the run has ended before
        if not self._depth:
            self._weights.run_ends(whole=found is not None)

    def end(self) -> None:
        """Note that the run ends, in whatever depth."""
        self._depth = 0
        self._weights.run_ends(whole=False)


_PRESERVED: list[_Runs] = []
"""Of the models that are preserved now, the innermost last; the thread that holds ``ONE_THREAD`` has them."""


def end_run() -> None:
    """Note that a run is about to end by an exception of which torch tells no hook: one that is no ``Exception``."""
    if _PRESERVED:
        _PRESERVED[-1].end()


@contextmanager
def _met_by_operations(model: nn.Module) -> Iterator[None]:
    """Let modes meet what torch runs otherwise, such as checkpoints and maps, and what other threads run."""
    with (
        padded_encoders(model),
        without_backward_hooks(model),
        without_checkpoints(),
        scripts_as_operations(),
        maps_as_loops(),
        custom_functions_followed(),
        work_of_threads_met(),
    ):
        yield


@contextmanager
def preserved(model: nn.Module, seed: object) -> Iterator[RandomGenerators]:
    """Put a model into evaluation mode, start each of its runs from one state, and give it back as it was.

    A model may store its last state, to go on from there, or set its weights in its forward pass. Each run starts from
    what the model holds now, and that is restored at the end: see :class:`ModelState`. The generators of random numbers
    are restored as well.

    Args:
        model: The model.
        seed: Every run starts all generators from it; None to let them go on.

    Yields:
        The generators that the model may draw from.

    Raises:
        ChangedWeightsError: If something else changed the model's weights meanwhile.
    """
    number = checked_seed(seed)
    with ONE_THREAD, eval_mode(model), _met_by_operations(model), look_ups_noted(model):
        weights, state = UnchangedWeights(model), ModelState(model)
        generators = RandomGenerators(state.generators)
        runs = _Runs(weights, state, generators, number)
        hooks = (
            model.register_forward_pre_hook(in_this_thread(runs.start), prepend=True),
            model.register_forward_hook(in_this_thread(runs.stop), always_call=True),
        )
        _PRESERVED.append(runs)
        try:
            yield generators
        finally:
            _PRESERVED.pop()
            for hook in hooks:
                hook.remove()
            state.restore()
            generators.restore()
            weights.check()  # a change may be the cause of another error
