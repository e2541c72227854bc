"""Checks of the arguments of :func:`unrolled.decompose` and of the methods of its result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from numbers import Real

import torch
from torch import Tensor
from torch._C._functorch import get_unwrapped, is_batchedtensor, is_functorch_wrapped_tensor, is_gradtrackingtensor
from torch.autograd.forward_ad import unpack_dual
from torch.nn.parameter import is_lazy

from unrolled.errors import NonFiniteError, ShapeError, UsageError, kind_of
from unrolled.model_runs.nested_tensors import leaves
from unrolled.whole_number import whole_number

__all__ = [
    "checked_count",
    "checked_direction",
    "checked_names",
    "checked_order",
    "checked_tolerance",
    "checked_weight",
    "place_of_infinite_number",
    "refuse_devices_without_float64",
    "refuse_meta",
    "refuse_nested",
    "refuse_transformed",
]


def refuse_meta(named: Mapping[str, object]) -> None:
    """Refuse tensors without numbers.

    Raises:
        UsageError: If one is on the device meta, or is that of a lazy module which was not called yet.
    """
    for (name, *place), value in leaves(dict(named)):
        if is_lazy(value):
            raise UsageError(
                f"{name} is not initialised, since its lazy module was never called; call the model once before"
            )
        if value.is_meta:
            raise UsageError(
                f"{_at(name, place)} is on the device meta and holds no numbers; load the "
                'weights and inputs first: module.to_empty(device="cpu") and load_state_dict'
            )


def refuse_transformed(named: Mapping[str, object]) -> None:
    """Refuse tensors of a transform of torch.func, whose derivatives would be lost: of zero, without a word.

    Raises:
        UsageError: If one belongs to vmap, or to a grad or jvp that it was not detached from.
    """
    for (name, *place), value in leaves(dict(named)):
        if _is_transformed(value):
            at = _at(name, place)
            # whether the terms are differentiated or only handed on, as by has_aux, is decided after they are returned
            constant = "" if _of_several(value) else f"pass {at}.detach() if you need no derivatives of the terms, or "
            raise UsageError(
                f"{at} belongs to a transform of torch.func (vmap, grad, jvp), and terms have no derivatives; "
                f"{constant}call unrolled.decompose outside of it, for several sequences at once on a batch"
            )


def _is_transformed(value: Tensor) -> bool:
    """Whether a transform differentiates or maps a tensor."""
    if _of_several(value):
        return True
    return is_gradtrackingtensor(value) and (value.requires_grad or unpack_dual(value).tangent is not None)


def _of_several(value: Tensor) -> bool:
    """Whether a tensor is mapped, or several transforms met it, of which only the last one tells."""
    differentiated = is_gradtrackingtensor(value) and is_functorch_wrapped_tensor(get_unwrapped(value))
    return is_batchedtensor(value) or differentiated


def refuse_nested(named: Mapping[str, object]) -> None:
    """Refuse nested tensors, whose rows have lengths of their own.

    Raises:
        UsageError: If one is nested.
    """
    for (name, *place), value in leaves(dict(named)):
        if value.is_nested:
            raise UsageError(
                f"{_at(name, place)} is a nested tensor, whose entries cannot be followed; pass a list of its tensors, "
                "x.unbind(), or a padded one, and let the model make what it reads of them"
            )


def place_of_infinite_number(named: Mapping[str, object]) -> str:
    """Say which number of some arguments is NaN or infinite, the first NaN if there is one; "" for none.

    A mask of an attention may hold minus infinity, and is not to blame.
    """
    numbers = [(place, each) for place, each in leaves(dict(named)) if each.layout == torch.strided]
    for is_odd in (torch.isnan, torch.isinf):
        for (name, *place), value in numbers:
            if is_odd(value).any():
                index = tuple(is_odd(value).nonzero()[0].tolist())
                return f"; {_at(name, place)} is {value[index].item()} at {index}"
    return ""


def _at(name: str, place: Sequence[object]) -> str:
    return name + "".join(f"[{key}]" for key in place)


def refuse_devices_without_float64(named: Mapping[str, object]) -> None:
    """Refuse tensors of a device on which the scores of n-grams cannot be summed.

    Raises:
        UsageError: If one is on Apple's device mps.
    """
    for (name, *place), value in leaves(dict(named)):
        if value.device.type == "mps":
            raise UsageError(
                f"{_at(name, place)} is on the device mps, which has no float64, the type in "
                "which scores are summed; move the model and its inputs to the CPU: model.cpu()"
            )


def checked_order(order: object) -> int | None:
    """Return the validated length of the longest n-gram, or None for no limit."""
    if order is None:
        return None
    whole = whole_number(order)
    if whole is None or whole < 1:
        raise UsageError(f"max_order is {order!r}; expected a whole number, 1 or more, or None for no limit")
    return whole


def checked_count(label: str, value: object, least: int = 0) -> int:
    """Return a validated whole number that is at least ``least``."""
    whole = whole_number(value)
    if whole is None or whole < least:
        raise UsageError(f"{label} is {value!r}; expected {least} or more, a whole number")
    return whole


def checked_names(label: str, given: object, count: int, of: str) -> tuple[str, ...]:
    """Return ``count`` names as the user gave them, in their order.

    Args:
        label: What they are in an error: ``"classes"``.
        given: A list, an array, or anything else that has a length and an order.
        count: How many are expected.
        of: What each of them names.

    Raises:
        UsageError: If they have no order or are no list.
        ShapeError: If there are more or fewer, or they are one string.
    """
    if isinstance(given, str):
        raise ShapeError(f"{label} are the string {given[:40]!r}; expected {count} names, one for each {of}")
    single = getattr(given, "ndim", 1) == 0  # an array of no axis
    if isinstance(given, Mapping | Set | bytes) or not isinstance(given, Collection) or single:
        raise UsageError(f"{label} are {kind_of(given)}; expected a list of {count} names, one for each {of}")
    names = tuple(map(str, given.tolist() if isinstance(given, Tensor) else given))
    if len(names) != count:
        raise ShapeError(f"{label} are {len(names)} names; expected {count}, one for each {of}")
    return names


def checked_tolerance(tolerance: object) -> float:
    """Return the validated relative error."""
    if not isinstance(tolerance, Real) or not float(tolerance) > 0:
        raise UsageError(f"tolerance is {tolerance!r}; expected a positive number")
    return float(tolerance)


def checked_direction(direction: object, count: int) -> int:
    """Return the validated direction of a network that has ``count`` of them."""
    if not isinstance(direction, int) or not 0 <= direction < count:
        raise UsageError(f"direction is {direction!r}; expected 0 to {count - 1}: 0 is forward, 1 backward")
    return direction


def checked_weight(weight: object, hidden: int, like: Tensor) -> Tensor:
    """Return a readout's weight as (classes, hidden), without gradient, with dtype and device of ``like``."""
    try:
        given = (weight if isinstance(weight, Tensor) else torch.as_tensor(weight, device="cpu")).detach()
    except (TypeError, ValueError, RuntimeError):
        kind = type(weight).__name__
        raise UsageError(f"weight is a {kind}; expected numbers of shape (classes, {hidden}) or ({hidden},)") from None
    if given.is_complex() or given.dtype == torch.bool:
        raise UsageError(f"weight is {given.dtype}; expected real numbers")
    rows = given[None] if given.dim() == 1 else given
    if rows.dim() != 2 or rows.shape[1] != hidden:
        raise ShapeError(f"weight has shape {tuple(given.shape)}; expected (classes, {hidden}) or ({hidden},)")
    if not torch.isfinite(rows).all():
        raise NonFiniteError("weight holds NaN or infinity; expected finite numbers")
    return rows.to(like)
