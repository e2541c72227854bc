"""Rules of operations, registered by the operations' names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from unrolled.held_forward.operations.operation_names import plain_name

__all__ = ["registers"]

Rule = TypeVar("Rule", bound=Callable[..., object])


class Register(Protocol[Rule]):
    """Registers a rule for operations by name."""

    def __call__(self, *names: str) -> Callable[[Rule], Rule]:
        """Return the decorator."""


def registers(rules: dict[str, Rule]) -> Register[Rule]:
    """Make what registers a function in ``rules`` under operations' names."""

    def under(*names: str) -> Callable[[Rule], Rule]:
        """Register a rule for the operations of these names."""

        def register(function: Rule) -> Rule:
            rules.update(dict.fromkeys(map(plain_name, names), function))
            return function

        return register

    return under
