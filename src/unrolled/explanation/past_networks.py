"""What a model reads by another way than by the steps of its networks: for its output, and for their first states."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from unrolled.decomposition.nested_tensors import Place, copy_tensors, leaves, rebuilt
from unrolled.decomposition.preserve_model import preserved
from unrolled.explanation.networks.find_network import FoundNetworks
from unrolled.explanation.targets.target_function import called_target
from unrolled.held_forward.all_modules import all_modules
from unrolled.held_forward.operation_names import name_of
from unrolled.held_forward.replaced_attributes import replaced_attributes
from unrolled.held_forward.this_thread import in_this_thread

__all__ = ["first_states_read", "reads_past"]


def reads_past(
    model: nn.Module,
    networks: Collection[nn.Module],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    target: object,
    seed: int | None,
) -> bool:
    """Tell whether gradients show that numbers reach the output past these networks, or what a target makes of it.

    Numbers that the model detaches count as well. Nothing is shown where it takes numbers out of tensors, computes in
    inference mode, or calls a network by another way than its ``forward``.
    """
    given, places = _with_gradients(args, kwargs)
    if not places:
        return False
    called: set[nn.Module] = set()

    def cut_off(module: nn.Module, _: object, output: object) -> object:
        called.add(module)
        with torch._C.DisableTorchFunction():  # or the copies would not be detached
            return copy_tensors(output)

    cut = in_this_thread(cut_off)
    hooks = [network.register_forward_hook(cut) for network in networks]
    try:
        with preserved(model, seed), torch.enable_grad(), _Attached():
            output = model(*given[0], **given[1])
            output = called_target(target, output) if callable(target) else output
        if not isinstance(output, Tensor) or not output.requires_grad or len(called) < len(set(networks)):
            return False
        weights = torch.linspace(1.0, 2.0, output.numel(), device=output.device).reshape(output.shape)
        total = (output * weights.to(output)).sum()  # weighed: the sum of a softmax is a constant
        gradients: tuple[Any, ...] = torch.autograd.grad(total, [*places.values()], allow_unused=True)
    except Exception:  # a model may fail in any way where its arguments are differentiated
        return False
    finally:
        for hook in hooks:
            hook.remove()
    return any(each is not None and bool(each.any()) for each in gradients)


def first_states_read(
    model: nn.Module,
    networks: FoundNetworks,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    seed: int | None,
) -> tuple[bool, list[str]]:
    """Tell whether first states are computed of numbers of the arguments, and name the tables whose vectors they read.

    A state that is an argument itself does not count, nor does what other opened networks make of their steps.
    """
    given, places = _with_gradients(args, kwargs)
    modules = all_modules(model)
    states: dict[str, list[Tensor]] = {}
    vectors: dict[str, list[Tensor]] = {}

    def cut(path: str) -> Callable[..., object]:
        method = getattr(modules[path], networks.methods[path])
        signature, form = inspect.signature(method), networks.steps.get(path)

        def called(*own: object, **named: object) -> object:
            bound = signature.bind(*own, **named).arguments
            first = (next(iter(bound)),)  # what a network of torch reads at its steps
            found = leaves(dict(bound))
            states.setdefault(path, [s for at, s in found if (at in form.state if form else at[:1] != first)])
            with torch._C.DisableTorchFunction():
                return copy_tensors(method(*own, **named))

        return called

    def looked_up(path: str) -> Callable[..., object]:
        forward = modules[path].forward

        def called(*own: object, **named: object) -> object:
            leaf = forward(*own, **named).detach().requires_grad_()
            vectors.setdefault(f"{path}.weight", []).append(leaf)
            return leaf.clone()

        return called

    tables = [path for path, each in modules.items() if isinstance(each, nn.Embedding | nn.EmbeddingBag)]
    stand_ins = [(modules[path], networks.methods[path], cut(path)) for path in networks.opened]
    stand_ins += [(modules[path], "forward", looked_up(path)) for path in tables]
    try:
        with preserved(model, seed), torch.enable_grad(), _Attached(), replaced_attributes(stand_ins):
            model(*given[0], **given[1])
        passed = {each.untyped_storage().data_ptr() for _, each in leaves(given)}
        made = [s for each in states.values() for s in each if s.untyped_storage().data_ptr() not in passed]
        by_numbers = _depends(made, list(places.values()))
        return by_numbers, sorted(name for name, each in vectors.items() if _depends(made, each))
    except Exception:  # as above
        return False, []


def _with_gradients(args: tuple[object, ...], kwargs: Mapping[str, object]) -> tuple[Any, dict[Place, Tensor]]:
    """Copy the arguments of a call; return those of floating-point numbers as well, which ask for gradients."""
    given = copy_tensors((args, dict(kwargs)))
    places = {place: each.requires_grad_() for place, each in leaves(given) if each.is_floating_point()}
    # a model may change them in place
    return rebuilt(given, {place: each.clone() for place, each in places.items()}), places


def _depends(results: list[Tensor], sources: list[Tensor]) -> bool:
    """Tell whether a gradient leads from results to sources."""
    results = [each for each in results if each.requires_grad]
    if not results or not sources:
        return False
    weights = [torch.linspace(1.0, 2.0, each.numel(), device="cpu").view(each.shape).to(each) for each in results]
    gradients = torch.autograd.grad(results, sources, weights, retain_graph=True, allow_unused=True)
    return any(each is not None and bool(each.any()) for each in gradients)


class _Attached(TorchFunctionMode):
    """Records gradients also where a model detaches what it reads, as layers that normalise a series do."""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if name_of(func).name == "detach":
            return args[0].view_as(args[0])
        if func is torch._C._set_grad_enabled:  # torch.no_grad()
            return None
        return func(*args, **(kwargs or {}))
