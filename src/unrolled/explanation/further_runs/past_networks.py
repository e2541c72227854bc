"""Whether what is explained of a model depends on its arguments by another way than through its networks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from unrolled.explanation.further_runs.traced_vectors import TracedVectors, depends
from unrolled.explanation.request import Request
from unrolled.explanation.targets.target_function import called_target
from unrolled.held_forward.operations.operation_names import name_of
from unrolled.model_runs.nested_tensors import Place, copy_tensors, leaves, rebuilt
from unrolled.model_runs.preserve_model import preserved
from unrolled.user_models.this_thread import in_this_thread

__all__ = ["Attached", "PastNetworks", "with_gradients"]


@dataclass(frozen=True)
class PastNetworks:
    """A call of a model, and what its output reads of the arguments by another way than through some networks.

    Gradients show it. Numbers that the model detaches count as well. Nothing is shown where it takes numbers out of
    tensors, computes in inference mode, or calls a network by another way than its ``forward``.
    """

    model: nn.Module
    networks: Collection[nn.Module]
    asked: Request
    """With the arguments; a target that is a function is applied to the output."""

    def numbers_read(self, classes: tuple[int, ...]) -> bool:
        """Tell whether numbers reach the output of some classes, of all if none is given."""
        if not any(each.is_floating_point() for _, each in leaves(self.asked.arguments)):
            return False
        return self._read(classes, copy_tensors)[0]

    def read_at_zero(self, classes: tuple[int, ...]) -> tuple[bool, list[str]]:
        """Tell whether numbers make the output where networks return zeros, and name the tables whose vectors do."""

        def zeros(output: object) -> object:
            states = ((place, each) for place, each in leaves(output) if each.is_floating_point() or each.is_complex())
            # they ask for gradients, so that what is computed of them is no table; a copy may change in place
            return rebuilt(output, {place: torch.zeros_like(each).requires_grad_().clone() for place, each in states})

        return self._read(classes, zeros)

    def _read(self, classes: tuple[int, ...], instead: Callable[[object], object]) -> tuple[bool, list[str]]:
        """Run the model with other outputs of its networks; tell of numbers, and name the tables that are read."""
        given, places = with_gradients(self.asked.args, self.asked.kwargs)
        called: set[nn.Module] = set()
        tracer, target = TracedVectors(), self.asked.wanted.target

        def cut_off(module: nn.Module, _: object, output: object) -> object:
            called.add(module)
            with torch._C.DisableTorchFunction():  # or the copies would not be detached
                return instead(output)

        with ExitStack() as hooks:
            for network in self.networks:
                hooks.enter_context(network.register_forward_hook(in_this_thread(cut_off)))
            try:
                with preserved(self.model, self.asked.seed), torch.enable_grad(), Attached():
                    tracer.begin_run(self.model)
                    opened, named = tracer.open_call(*given)
                    with tracer:
                        output = self.model(*opened, **named)
                        output = called_target(target, output) if callable(target) else output
                if not isinstance(output, Tensor) or len(called) < len(set(self.networks)):
                    return False, []
                output = output[..., list(classes)] if classes and output.dim() > 1 else output
                return depends([output], list(places.values())), tracer.tables_read(self.model, [output])
            except Exception:  # a model may fail in any way where its arguments are differentiated
                return False, []


def with_gradients(args: tuple[object, ...], kwargs: Mapping[str, object]) -> tuple[Any, dict[Place, Tensor]]:
    """Copy the arguments of a call; return those of floating-point numbers as well, which ask for gradients."""
    given = copy_tensors((args, dict(kwargs)))
    places = {place: each.requires_grad_() for place, each in leaves(given) if each.is_floating_point()}
    # a model may change them in place
    return rebuilt(given, {place: each.clone() for place, each in places.items()}), places


class Attached(TorchFunctionMode):
    """Records gradients also where a model detaches what it reads, as layers that normalise a series do."""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if name_of(func).name == "detach":
            return args[0].view_as(args[0])
        if func is torch._C._set_grad_enabled:  # torch.no_grad()
            return None
        if func in (Tensor.numpy, Tensor.__array__):  # which refuse what has been detached and asks for a gradient here
            with torch._C.DisableTorchFunction():
                return func(args[0].detach(), *args[1:], **(kwargs or {}))
        return func(*args, **(kwargs or {}))
