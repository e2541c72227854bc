"""The generators of random numbers that a model may draw from: those of torch, Python and numpy, and its own."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from typing import Any

import torch

from unrolled.errors import UsageError
from unrolled.whole_number import whole_number

__all__ = ["RandomGenerators", "checked_seed", "is_generator"]

_PYTHON = random.Random  # noqa: S311  # the type of what a model draws with


def checked_seed(seed: object) -> int | None:
    """Return the validated seed, or None for none."""
    if seed is None:
        return None
    number = whole_number(seed)
    if number is None or not 0 <= number < 2**32:
        raise UsageError(f"seed is {seed!r}; expected a whole number from 0 to 2**32 - 1, or None")
    return number


def _numpy_random() -> Any:
    """Return numpy's module of generators; None if nothing has imported it, so that nothing draws from them."""
    return sys.modules.get("numpy.random")


def is_generator(value: object) -> bool:
    """Tell whether an object that a model keeps is a generator of its own."""
    if isinstance(value, torch.Generator | _PYTHON):
        return True
    numpy = _numpy_random()
    return numpy is not None and isinstance(value, numpy.Generator | numpy.RandomState)


class RandomGenerators:
    """All generators that one model may draw from, with the states that they have now.

    Args:
        own: The generators that the model keeps.
    """

    def __init__(self, own: Iterable[Any]) -> None:
        self.own = tuple(own)
        self._start = self._before = self._states()
        self._repeats = False

    def _states(self) -> dict[str, Any]:
        numpy = _numpy_random()
        states: dict[str, Any] = {"torch": torch.get_rng_state(), "Python's random": random.getstate()}
        if numpy is not None:
            states["numpy.random"] = numpy.get_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["torch.cuda"] = tuple(torch.cuda.get_rng_state_all())
        if self.own:
            states["a generator of the model's own"] = tuple(map(_state, self.own))
        return states

    def moved(self) -> list[str]:
        """Name the generators that were drawn from since the start, or since they were seeded."""
        return self._other_than(self._before)

    def _other_than(self, states: dict[str, Any]) -> list[str]:
        now = self._states()
        return [name for name, state in now.items() if name in states and not _same(state, states[name])]

    def restore(self) -> None:
        """Put every generator that moved back."""
        numpy = _numpy_random()
        for name in self._other_than(self._start):
            state = self._start[name]
            if name == "torch":
                torch.set_rng_state(state)
            elif name == "torch.cuda":
                torch.cuda.set_rng_state_all(state)
            elif name == "Python's random":
                random.setstate(state)
            elif name == "numpy.random":
                numpy.set_state(state)
            else:
                for generator, before in zip(self.own, state, strict=True):
                    _set_state(generator, before)

    def repeat(self) -> None:
        """Let every further run draw what the first one drew."""
        self._repeats = True

    def start_run(self, seed: int | None) -> None:
        """Start all generators anew where every run draws the same."""
        if seed is not None:
            self.seed(seed)
        elif self._repeats:
            self.restore()

    def seed(self, seed: int) -> None:
        """Start every generator from a seed."""
        torch.manual_seed(seed)
        random.seed(seed)
        numpy = _numpy_random()
        if numpy is not None:
            numpy.seed(seed)
        for generator in self.own:
            if isinstance(generator, torch.Generator):
                generator.manual_seed(seed)
            elif hasattr(generator, "bit_generator"):
                generator.bit_generator.state = type(generator.bit_generator)(seed).state
            else:
                generator.seed(seed)
        self._before = self._states()


def _state(generator: Any) -> Any:
    if isinstance(generator, _PYTHON):
        return generator.getstate()
    return generator.bit_generator.state if hasattr(generator, "bit_generator") else generator.get_state()


def _set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, _PYTHON):
        generator.setstate(state)
    elif hasattr(generator, "bit_generator"):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


def _same(one: Any, other: Any) -> bool:
    """Compare two states, which hold tensors, arrays, tuples and dictionaries."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list) and len(one) < 100:
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one.tobytes() == other.tobytes()) if hasattr(one, "tobytes") else bool(one == other)
