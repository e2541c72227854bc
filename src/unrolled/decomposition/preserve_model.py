"""Leave a model and its arguments as they were, whatever is run in between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.decomposition.eval_mode import ONE_THREAD, eval_mode
from unrolled.decomposition.model_state import ModelState
from unrolled.decomposition.random_generators import RandomGenerators, checked_seed
from unrolled.decomposition.unchanged_weights import UnchangedWeights

__all__ = ["copy_tensors", "items_of", "preserved", "with_items", "without_gradients"]


@contextmanager
def preserved(model: nn.Module, seed: object = None) -> Iterator[RandomGenerators]:
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
    with ONE_THREAD, eval_mode(model):
        weights, state = UnchangedWeights(model), ModelState(model)
        generators = RandomGenerators(state.generators)
        depth = 0  # a recursive model calls itself

        def start(*_: object) -> None:
            nonlocal depth
            if not depth:
                state.restore(between_runs=True)
                generators.start_run(number)
                weights.run_starts()
            depth += 1

        def stop(*_: object) -> None:
            nonlocal depth
            depth -= 1
            if not depth:
                weights.run_ends()

        hooks = (
            model.register_forward_pre_hook(start, prepend=True),
            model.register_forward_hook(stop, always_call=True),
        )
        try:
            yield generators
        finally:
            for hook in hooks:
                hook.remove()
            state.restore()
            state.restore_flags()
            generators.restore()
            weights.check()  # a change may be the cause of another error


@contextmanager
def without_gradients(model: nn.Module) -> Iterator[None]:
    """Let no parameter require a gradient: in a held forward that means that it carries value."""
    flags = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        for parameter, _ in flags:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter, flag in flags:
            parameter.requires_grad_(flag)


def copy_tensors(value: object) -> Any:
    """Copy the tensors in a model's arguments or results; tuples, lists, dictionaries and dataclasses are searched.

    A model may work in place; and autograd refuses tensors that were made in inference mode.
    """
    if isinstance(value, Tensor):
        return value.detach().clone()
    if type(value) is PackedSequence:
        return PackedSequence(*map(copy_tensors, value))
    items = items_of(value)
    return value if items is None else with_items(value, {key: copy_tensors(item) for key, item in items.items()})


def items_of(value: object) -> dict[Any, Any] | None:
    """Return the parts of a tuple, list, dictionary or dataclass; None for anything else."""
    if type(value) is tuple or type(value) is list or (isinstance(value, tuple) and _is_named(value)):
        return dict(enumerate(value))
    if isinstance(value, dict):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value) if hasattr(value, each.name)}
    return None


def with_items(value: Any, items: Mapping[Any, Any]) -> Any:
    """Return a container of the same kind with other parts."""
    if isinstance(value, tuple | list):
        return type(value)(*items.values()) if _is_named(value) else type(value)(items.values())
    made = copy(value)
    if isinstance(made, dict):
        made.update(items)
        return made
    for name, item in items.items():
        object.__setattr__(made, name, item)
    return made


def _is_named(value: object) -> bool:
    return hasattr(value, "_fields") and not isinstance(value, PackedSequence)
