"""Rules of operations, registered by the operations' names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["registers"]

Rule = TypeVar("Rule", bound=Callable[..., object])


def registers(rules: dict[str, Rule]) -> Callable[[str], Callable[[Rule], Rule]]:
    """Make a decorator that adds a function to ``rules`` under operations' names, separated by spaces."""

    def under(names: str) -> Callable[[Rule], Rule]:
        """Register a rule for the operations of these names, separated by spaces."""

        def register(function: Rule) -> Rule:
            rules.update(dict.fromkeys(names.split(), function))
            return function

        return register

    return under
