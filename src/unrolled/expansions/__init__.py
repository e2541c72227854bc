"""Expansions by name: each turns a layer's Jacobian along its ray into (g_t, A_t)."""

from __future__ import annotations

import re

from unrolled.errors import UnknownNameError, UsageError, kind_of
from unrolled.expansions.base import Expansion
from unrolled.registry import Registry

__all__ = ["EXPANSIONS", "resolve"]

EXPANSIONS: Registry[Expansion] = Registry(__name__, Expansion, "expansion")  # type: ignore[type-abstract]  # a base

CALL = re.compile(r"\s*(?P<name>\w+)\s*(?:\((?P<arguments>.*)\))?\s*")
ARGUMENT = re.compile(r"[^\s,()][^,()]*(?:\([^()]*\))?")


def resolve(expansion: str | Expansion) -> Expansion:
    """Return an expansion from a name such as ``"secant"``, ``"taylor(3)"`` or ``"mean(operating, shares(0.5))"``.

    Args:
        expansion: A name, with arguments in brackets where the expansion takes any, or the expansion itself.

    Raises:
        UnknownNameError: If there is no expansion of that name; the message suggests the nearest one.
        UsageError: If the arguments do not fit, or it is neither a name nor an expansion.
    """
    if isinstance(expansion, Expansion):
        return expansion
    if not isinstance(expansion, str):
        raise UsageError(f"the expansion is {kind_of(expansion)}; expected a name, such as 'secant', or an Expansion")
    match = CALL.fullmatch(expansion)
    if match is None:
        raise UnknownNameError("expansion", expansion, EXPANSIONS.names())
    member = EXPANSIONS.get(match["name"])
    return member.parse([word.strip() for word in ARGUMENT.findall(match["arguments"] or "")])
