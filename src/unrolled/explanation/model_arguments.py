"""The model's own keyword arguments beside those of ``explain`` and ``account``, which may have the same names."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.decomposition.arguments import refuse_meta, refuse_nested
from unrolled.errors import UsageError, kind_of
from unrolled.user_models.torch_script import is_scripted

__all__ = ["model_arguments", "named_arguments", "names_of_places", "shown_argument"]

_OWN = frozenset(
    "target tokens features expansion readout rnn call max_order seed strict model_kwargs of share against "
    "classes every_class".split()
)
"""The names that unrolled takes for itself."""


def named_arguments(args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return all arguments of a model by the names that they have in errors."""
    return {**{f"argument {place}": value for place, value in enumerate(args)}, **kwargs}


def names_of_places(model: nn.Module, count: int) -> dict[str, str]:
    """Return what a model's forward calls so many positional arguments, by their places; where it says."""
    if model._forward_pre_hooks:  # which may change the arguments
        return {}
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (AttributeError, TypeError, ValueError):  # a forward of C has no signature, a scripted module no forward
        return {}
    return {
        str(place): parameter.name
        for place, parameter in enumerate(parameters[:count])
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    }


def shown_argument(argument: str, names: Mapping[str, str]) -> str:
    """Name an argument, or a part of it, as the model's forward does by the names of places; else by its place."""
    place, *inside = argument.split(".", 1)
    return ".".join((names.get(place, place), *inside))


def model_arguments(
    model: nn.Module,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    model_kwargs: Mapping[str, object] | None,
    own: Mapping[str, object],
) -> dict[str, Any]:
    """Return all keyword arguments of the model.

    Args:
        model: The model.
        args: Its positional arguments.
        kwargs: Its keyword arguments whose names are not those of unrolled.
        model_kwargs: Its keyword arguments of any name.
        own: Arguments of unrolled that a user may have meant for the model.

    Raises:
        UsageError: If an argument is missing, unknown or given twice, or was taken by unrolled, if the model has no
            forward, or if a transform of torch.func is active.
    """
    if torch._C._are_functorch_transforms_active():
        raise UsageError(
            "this call computes gradients of its own, which vmap, grad and jvp of torch.func do not allow around it; "
            "call it outside of them, for several examples at once on a batch"
        )
    if not isinstance(model, nn.Module):
        raise UsageError(f"the model is {kind_of(model)}; expected a torch.nn.Module" + _module_of(model))
    _refuse_without_forward(model)
    if model_kwargs is not None and not isinstance(model_kwargs, Mapping):
        raise UsageError(f"model_kwargs is {kind_of(model_kwargs)}; expected a dictionary of names and values")
    twice = sorted({*kwargs} & {*(model_kwargs or {})})
    if twice:
        raise UsageError(f"{twice[0]} is given twice, as a keyword and in model_kwargs; give it once")
    given = {**kwargs, **(model_kwargs or {})}
    refuse_meta({**dict(model.named_parameters()), **dict(model.named_buffers())})
    arguments = named_arguments(args, given)
    refuse_meta(arguments)
    refuse_nested(arguments)
    if is_scripted(model):  # it shows the signature of a function, with self, or none
        return given
    try:
        signature = inspect.signature(model.forward)
    except (TypeError, ValueError):  # a forward of C has none
        return given
    for name, value in own.items():
        if name in signature.parameters and name not in given and isinstance(value, Tensor) and value.numel() != 1:
            raise UsageError(
                f"{name}= is an argument of unrolled; pass the model's own as model_kwargs={{{name!r}: …}}"
            )
    if not model._forward_pre_hooks:  # which may change the arguments
        _refuse_unbound(signature, args, given)
    return given


def _refuse_without_forward(model: nn.Module) -> None:
    """Refuse a module that computes nothing, unless its class is called in another way."""
    forward = getattr(model, "forward", None)  # a scripted module may lack it, and is refused as what it is
    has_none = getattr(forward, "__func__", None) is nn.Module.forward
    if has_none and all(getattr(type(model), name) is getattr(nn.Module, name) for name in ("__call__", "_call_impl")):
        raise UsageError(
            f"the model is {kind_of(model)}, which has no forward; expected a module that computes an output: call its "
            "parts in the forward of a module"
        )


def _refuse_unbound(signature: inspect.Signature, args: tuple[object, ...], given: Mapping[str, object]) -> None:
    """Refuse arguments that a model's forward does not take."""
    try:
        signature.bind(*args, **given)
    except TypeError as error:
        missing = [
            name
            for name, parameter in list(signature.parameters.items())[len(args) :]
            if parameter.default is parameter.empty
            and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            and name not in given
        ]
        hint = ""
        if missing and missing[0] in _OWN:
            hint = f"; pass it by position, or as model_kwargs={{{missing[0]!r}: …}}: the name is one of unrolled's"
        shown = str(signature) if len(str(signature)) < 90 else "(…)"
        raise UsageError(f"the model's forward{shown} does not take these arguments: {error}{hint}") from None


def _module_of(given: object) -> str:
    """Say how a module is made of what was given in its place."""
    if type(given).__name__ == "ExportedProgram":
        return "; pass the module that was exported"
    if isinstance(given, Mapping):
        return "; build the module of a state dict and call module.load_state_dict"
    if isinstance(given, str | PathLike):
        return "; build the module and load the file's weights into it, by module.load_state_dict"
    return ""
