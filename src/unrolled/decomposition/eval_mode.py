"""A network held still while it is read: in evaluation mode, without autocast, its weights as a call would have them.

Some weights are made when they are asked for: by a parametrisation, which in training may move with every look, or by
a hook that runs before the forward pass. And a cell that is opened by differentiation is stepped long after it was
opened. So whatever is opened is read in evaluation mode, and a cell of ours through a twin that stays in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized, type_before_parametrizations

if TYPE_CHECKING:
    from torch.nn.utils.rnn import PackedSequence

    from unrolled.cells.batch_layout import InitialState

__all__ = ["autocasting", "evaluating", "plain_arithmetic", "still", "through_pre_hooks"]

M = TypeVar("M", bound=nn.Module)

DEVICES = ("cpu", "cuda", "mps", "xpu")


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module and all inside it into evaluation mode, and back into the mode each was in.

    Args:
        module: the module. Its ``train`` is not called: a user's own may do more than set the mode.

    Yields:
        Nothing.
    """
    modes = {each: each.training for each in module.modules()}
    try:
        for each in modes:
            each.training = False
        yield
    finally:
        for each, mode in modes.items():
            each.training = mode


def autocasting() -> bool:
    """Say whether the caller lets torch choose types of lower precision."""
    return any(torch.is_autocast_enabled(device) for device in DEVICES)


@contextmanager
def plain_arithmetic() -> Iterator[None]:
    """Compute without gradients, and without autocast: terms rounded to bfloat16 would not add up.

    Yields:
        Nothing.
    """
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        for device in DEVICES:
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


def still(module: M) -> M:
    """Make a twin of a module that stays in evaluation mode, whatever becomes of the module's own.

    Args:
        module: the module; it is not changed.

    Returns:
        The twin. It shares parameters and buffers; what a parametrisation computes is its own, as it was now.
    """
    with evaluating(module):
        return cast("M", _twin(module))


def _twin(module: nn.Module) -> nn.Module:
    kind = type_before_parametrizations(module)
    twin: nn.Module = object.__new__(kind)
    own = module.__dict__
    # nn.Module's own records: a parametrised module refuses copy.copy, and a copy would share its children
    twin.__dict__.update(own, _parameters=dict(own["_parameters"]), _buffers=dict(own["_buffers"]))
    twin.__dict__["_modules"] = {
        name: None if child is None else _twin(child)
        for name, child in own["_modules"].items()
        if not (name == "parametrizations" and is_parametrized(module))
    }
    if is_parametrized(module):
        assert isinstance(module.parametrizations, nn.ModuleDict)
        for name in module.parametrizations:
            value = getattr(module, name).detach()
            twin.__dict__["_parameters"][name] = nn.Parameter(value, requires_grad=False)
    return twin


def through_pre_hooks(
    module: nn.Module, inputs: Tensor | PackedSequence, state: InitialState
) -> tuple[Tensor | PackedSequence, InitialState]:
    """Run a module's forward pre-hooks, as a call of it would: they make its weights, or change what comes in.

    Args:
        module: the module; old-style weight and spectral norms live in such hooks.
        inputs: what one would call it with.
        state: the initial state, if it gets one.

    Returns:
        The inputs and the state as the hooks leave them.
    """
    args: tuple[object, ...] = (inputs,) if state is None else (inputs, state)
    named: dict[str, object] = {}
    # with gradients, so that the weights which a hook leaves in the module can be trained
    with evaluating(module), torch.enable_grad():
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
