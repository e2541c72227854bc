"""Expansions by name: each turns a layer's Jacobian along its ray into (g_t, A_t)."""

from __future__ import annotations

import re

from unrolled.errors import UnknownNameError, UsageError, kind_of
from unrolled.expansions.base import Expansion
from unrolled.registry import Registry

__all__ = ["EXPANSIONS", "resolve"]

EXPANSIONS: Registry[Expansion] = Registry(__name__, Expansion, "expansion")  # type: ignore[type-abstract]  # a base

_CALL = re.compile(r"\s*(?P<name>\w+)\s*(?:\((?P<arguments>.*)\))?\s*")
_ARGUMENT = re.compile(r"[^\s,()][^,()]*(?:\([^()]*\))?")


def resolve(expansion: str | Expansion) -> Expansion:
    """Return an expansion from a name such as ``"secant"``, ``"taylor(3)"`` or ``"mean(operating, shares(0.5))"``.

    Args:
        expansion: A name, with arguments in brackets where the expansion takes any, or the expansion itself.

    Raises:
        UnknownNameError: If there is no expansion of that name; the message suggests the nearest one.
        UsageError: If the arguments do not fit, it is neither a name nor an expansion, or an expansion of a user's own
            does not say what it is.
    """
    if isinstance(expansion, Expansion):
        _check_claims(expansion)
        return expansion
    if not isinstance(expansion, str):
        raise _no_expansion(expansion)
    match = _CALL.fullmatch(expansion)
    if match is None:
        raise UnknownNameError("expansion", expansion, EXPANSIONS.names())
    member = EXPANSIONS.get(match["name"])
    return member.parse([word.strip() for word in _ARGUMENT.findall(match["arguments"] or "")])


def _check_claims(expansion: Expansion) -> None:
    """Refuse an expansion without its name, or without what it says of its n-grams."""
    for attribute, kind, example in (("name", str, '"mine"'), ("exact", bool, "True"), ("local", bool, "False")):
        if not isinstance(getattr(expansion, attribute, None), kind):
            raise UsageError(
                f"{type(expansion).__name__} lacks {attribute}; set one in its class: {attribute} = {example}"
            )


def _no_expansion(given: object) -> UsageError:
    """Return the error about what is neither a name nor an expansion; of a class it says how an object is made."""
    if isinstance(given, type) and issubclass(given, Expansion):
        return UsageError(f"the expansion is the class {given.__name__}; expected an object of it: {given.__name__}()")
    return UsageError(f"the expansion is {kind_of(given)}; expected a name, such as 'secant', or an Expansion")
