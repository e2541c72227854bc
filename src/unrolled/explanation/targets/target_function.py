"""Targets that are functions of the model's output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from unrolled.errors import UsageError, kind_of

__all__ = ["called_target", "function_name", "refuse_against"]


def called_target(target: Callable[..., Any], output: object) -> Any:
    """Call a target that is a function.

    Raises:
        UsageError: If it fails on this output; the error says so in one line.
    """
    try:
        return target(output)
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        shape = f" of shape {tuple(output.shape)}" if isinstance(output, Tensor) else ""
        why = str(error).splitlines()[0] if str(error) else "no message"
        raise UsageError(
            f"the target fails on the model's output, {kind_of(output)}{shape}: {type(error).__name__}: {why}"
        ) from error


def refuse_against(against: object) -> None:
    """Refuse a class whose output is to be subtracted from what a function selects."""
    if against is not None:
        raise UsageError("against is a class, but the target is a function; subtract in the function instead")


def function_name(target: Callable[..., Any]) -> str:
    """Name what a function selects."""
    name = getattr(target, "__name__", "")
    return name if name.isidentifier() else "the target"  # a lambda's name says nothing
