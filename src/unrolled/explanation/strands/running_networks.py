"""Which recurrent network of a model is running."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.decomposition.held_networks.recurrent_rules import networks_as_operations
from unrolled.decomposition.own_steps.step_calls import StepForm, steps_as_operations
from unrolled.user_models.all_modules import all_modules
from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = ["RunningNetworks"]


class RunningNetworks:
    """Knows the path of the network that a model is running, and how its batch was sorted."""

    def __init__(self) -> None:
        self._paths: list[tuple[str, Tensor | None]] = []
        self.ran: set[str] = set()
        """The paths of all networks that the model has run."""

    @property
    def now(self) -> tuple[str, Tensor | None]:
        """The path, empty for none, and the place of each sequence before its batch was sorted; None if it was not."""
        return self._paths[-1] if self._paths else ("", None)

    @contextmanager
    def noted(self, model: nn.Module, methods: Mapping[str, str], steps: Mapping[str, StepForm]) -> Iterator[None]:
        """Make calls of networks and steps operations of a mode, and note which runs, until the end of the block.

        Args:
            model: The model.
            methods: The method that a call of each network runs, by path.
            steps: The networks that are steps of the user's own.
        """
        modules = all_modules(model)
        own = (
            (modules[path], method, self._noted(path, getattr(modules[path], method)))
            for path, method in methods.items()
        )
        with networks_as_operations(model), steps_as_operations(model, steps), replaced_attributes(own):
            yield

    def _noted(self, path: str, forward: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **kwargs: Any) -> Any:
            packed = next((each for each in (*args, *kwargs.values()) if isinstance(each, PackedSequence)), None)
            self.ran.add(path)
            self._paths.append((path, None if packed is None else packed.sorted_indices))
            try:
                return forward(*args, **kwargs)
            finally:
                self._paths.pop()

        return noted
