"""Targets that are functions of the model's output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from torch import Tensor

from unrolled.errors import UsageError, kind_of
from unrolled.explanation.targets.likely_targets import example_target
from unrolled.model_runs.determinism import agree
from unrolled.model_runs.nested_tensors import tensors_in

__all__ = ["called_first", "called_target", "function_name", "refuse_against"]

_KEYS = 8
"""How many keys of a dictionary an error names."""


def called_first(target: Callable[..., Any], output: object) -> Any:
    """Call a target that is a function on an output on which it will be called again.

    Raises:
        UsageError: If it fails, or changes the output so that the next call fails or gives something else.
    """
    before = list(tensors_in(output))  # kept, so that no later tensor has the identity of one of them
    versions = _versions(before)
    chosen = called_target(target, output)
    if _versions(tensors_in(output)) == versions:
        return chosen
    found = [each.clone() for each in tensors_in(chosen)]  # they may share the memory of the output
    try:
        same = agree(found, list(tensors_in(target(output))))
    except Exception:  # a target may fail in any way on what it has changed
        same = False
    if same:
        return chosen
    raise UsageError(
        "the target changes the model's output, so that the next call gives something else; leave the output as it "
        "is: out * 2, not out.mul_(2); out['logits'], not out.pop('logits')"
    )


def _versions(tensors: Iterable[Tensor]) -> list[tuple[int, int]]:
    """Tell which tensors these are, and how often each was changed in place."""
    return [(id(each), 0 if each.is_inference() else each._version) for each in tensors]


def called_target(target: Callable[..., Any], output: object) -> Any:
    """Call a target that is a function.

    Raises:
        UsageError: If it fails on this output; the error says so in one line.
    """
    try:
        return target(output)
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        why = str(error).splitlines()[0] if str(error) else "no message"
        raise UsageError(
            f"the target fails on the model's output, {kind_of(output)}{_form(output)}: {type(error).__name__}: {why}"
            f"{'' if isinstance(output, Mapping) and isinstance(error, IndexError) else _advice(output)}"
        ) from error


def _form(output: object) -> str:
    """Say what a target can pick from an output: the shape of a tensor, the keys of a dictionary."""
    if isinstance(output, Tensor):
        return f" of shape {tuple(output.shape)}"
    if isinstance(output, Mapping):
        keys = [" ".join(repr(key).split()) for key in islice(output, _KEYS + 1)]
        if len(keys) < 2:
            return f" with the key {keys[0]}" if keys else " without keys"
        return f" with the keys {', '.join(keys[:_KEYS])}{', …' if len(keys) > _KEYS else ''}"
    return f" of {len(output)}" if isinstance(output, tuple | list) else ""


def _advice(output: object) -> str:
    """Say how a tensor is picked from what holds several."""
    example = example_target(output) if isinstance(output, Mapping | tuple | list) else ""
    return f"; pick one of its tensors first, as in{example.removeprefix(':')}" if example else ""


def refuse_against(against: object) -> None:
    """Refuse a class whose output is to be subtracted from what a function selects."""
    if against is not None:
        raise UsageError("against is a class, but the target is a function; subtract in the function instead")


def function_name(target: Callable[..., Any]) -> str:
    """Name what a function selects."""
    name = getattr(target, "__name__", "")
    return name if name.isidentifier() else "the target"  # a lambda's name says nothing
