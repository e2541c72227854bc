"""Rules of operations, registered by the operations' names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from unrolled.held_forward.operations.operation_names import plain_name

__all__ = ["registers"]

Rule = TypeVar("Rule", bound=Callable[..., object])


def registers(rules: dict[str, Rule]) -> Callable[..., Callable[[Rule], Rule]]:
    """Make what registers a function in ``rules`` under operations' names."""

    def under(*names: str) -> Callable[[Rule], Rule]:
        """Register a rule for the operations of these names."""

        def register(function: Rule) -> Rule:
            rules.update(dict.fromkeys(map(plain_name, names), function))
            return function

        return register

    return under
