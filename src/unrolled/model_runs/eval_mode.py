"""Read a network as it computes in evaluation mode, and leave it as it was.

Some weights are computed when they are read: by a parametrisation, which may change at every read in training mode, or
by a hook before the forward pass. And a decomposition reads a cell's weights long after the network was opened. So a
network is opened in evaluation mode, and its cells are read through copies that stay in that mode.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized, type_before_parametrizations

from unrolled.errors import UnrolledError, UsageError, first_line
from unrolled.user_models.all_modules import OF_EVERY_MODULE, all_modules, modules_inside
from unrolled.user_models.this_thread import ONE_THREAD
from unrolled.user_models.torch_script import is_scripted

if TYPE_CHECKING:
    from torch.nn.utils.rnn import PackedSequence

    from unrolled.cells.batch_layout import InitialState

__all__ = [
    "UNDER_AUTOCAST",
    "autocast_enabled",
    "eval_copy",
    "eval_mode",
    "run_pre_hooks",
    "without_autocast",
    "without_grad_and_autocast",
]

M = TypeVar("M", bound=nn.Module)

_DEVICES = tuple(device for device in ("cpu", "cuda", "mps", "xpu") if torch.amp.is_autocast_available(device))


UNDER_AUTOCAST = (
    "the model runs its recurrent network under torch.autocast, so its states are too coarse for an account; switch "
    "that off where its forward switches it on: enabled=False"
)
"""What a refusal says."""


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """Put a module and its submodules into evaluation mode, and restore each one's own mode at the end."""
    with ONE_THREAD:
        modes = {each: each.training for each in all_modules(module).values()}
        try:
            for each in modes:
                each.training = False  # not each.train(): a user's own may do more than set the mode
            yield
        finally:
            for each, mode in modes.items():
                each.training = mode


def autocast_enabled() -> bool:
    """Tell whether autocast is on for any device."""
    return any(torch.is_autocast_enabled(device) for device in _DEVICES)


@contextmanager
def without_grad_and_autocast() -> Iterator[None]:
    """Compute without gradients and without autocast."""
    with torch.no_grad(), without_autocast():
        yield


@contextmanager
def without_autocast() -> Iterator[None]:
    """Compute without autocast: terms rounded to bfloat16 would not add up.

    Raises:
        UsageError: If a model of several types fails so: autocast is what made them one.
    """
    enabled = [device for device in _DEVICES if torch.is_autocast_enabled(device)]
    with ExitStack() as stack:
        for device in enabled:
            stack.enter_context(torch.autocast(device, enabled=False))
        try:
            yield
        except (RuntimeError, ValueError) as error:
            if not enabled or isinstance(error, UnrolledError) or "dtype" not in str(error):
                raise
            raise UsageError(
                f"a model is opened without the autocast around the call, and fails so: {first_line(error)}; convert "
                "it to one type: model.float()"
            ) from error


def eval_copy(module: M) -> M:
    """Copy a module so that the copy stays in evaluation mode.

    The copy shares parameters and buffers. A parametrised weight is copied with its value in evaluation mode, and a
    method that the module keeps as an attribute (``self.activate = self.spike``) becomes one of the copy.
    """
    copies: dict[nn.Module, nn.Module] = {}
    with eval_mode(module):
        copied = cast("M", _copy_module(module, copies))
    for each in copies.values():
        for name, value in list(vars(each).items()):
            if isinstance(value, MethodType) and value.__self__ in copies:
                vars(each)[name] = MethodType(value.__func__, copies[value.__self__])
    return copied


def _copy_module(module: nn.Module, copies: dict[nn.Module, nn.Module]) -> nn.Module:
    if module in copies:
        return copies[module]
    kind = type_before_parametrizations(module)
    copied: nn.Module = object.__new__(kind)
    copies[module] = copied
    own = module.__dict__
    # nn.Module's own records: a parametrised module refuses copy.copy, and a copy would share its children
    copied.__dict__.update(own, _parameters=dict(own["_parameters"]), _buffers=dict(own["_buffers"]))
    copied.__dict__["_modules"] = {
        name: None if child is None else _copy_module(child, copies)
        for name, child in own["_modules"].items()
        if not (name == "parametrizations" and is_parametrized(module))
    }
    if is_parametrized(module):
        assert isinstance(module.parametrizations, nn.ModuleDict)
        for name in module.parametrizations:
            value = getattr(module, name).detach()
            copied.__dict__["_parameters"][name] = nn.Parameter(value, requires_grad=False)
    kept: dict[int, Any] = {}
    for name, value in own.items():
        if name not in OF_EVERY_MODULE:
            copied.__dict__[name] = _copy_kept(value, copies, kept)
    return copied


def _copy_kept(value: Any, copies: dict[nn.Module, nn.Module], kept: dict[int, Any]) -> Any:
    """Copy the modules that a container holds, which torch does not register; return any other value as it is."""
    if isinstance(value, nn.Module):
        return value if is_scripted(value) else _copy_module(value, copies)
    if id(value) in kept:
        return kept[id(value)]
    kind = type(value)
    if kind not in (list, dict, OrderedDict) and not isinstance(value, tuple):
        return value
    if next(modules_inside([("", value)]), None) is None:
        return value
    if isinstance(value, tuple):
        parts = [_copy_kept(each, copies, kept) for each in value]
        return kind._make(parts) if hasattr(kind, "_make") else tuple(parts)
    made = kept[id(value)] = kind()
    if isinstance(value, dict):
        made.update((key, _copy_kept(each, copies, kept)) for key, each in value.items())
    else:
        made.extend(_copy_kept(each, copies, kept) for each in value)
    return made


def run_pre_hooks(
    module: nn.Module, inputs: Tensor | PackedSequence, state: InitialState
) -> tuple[Tensor | PackedSequence, InitialState]:
    """Run a module's forward pre-hooks, as a call would, and return the inputs and the state as they leave them.

    Old-style weight and spectral norms compute their weights in such hooks.
    """
    args: tuple[object, ...] = (inputs,) if state is None else (inputs, state)
    named: dict[str, object] = {}
    # with gradients, so that the weights which a hook leaves in the module can be trained
    with eval_mode(module), torch.enable_grad():
        for key, hook in module._forward_pre_hooks.items():
            if key in module._forward_pre_hooks_with_kwargs:
                changed = hook(module, args, named)
                args, named = (args, named) if changed is None else changed
            else:
                changed = hook(module, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
    return (
        cast("Tensor | PackedSequence", named["input"] if "input" in named else args[0]),
        cast("InitialState", named.get("hx", args[1] if len(args) > 1 else None)),
    )
