"""What the first states of a model's networks are computed of: words, numbers of its arguments, or neither."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from unrolled.explanation.further_runs.past_networks import Attached, with_gradients
from unrolled.explanation.further_runs.traced_vectors import TracedVectors, depends
from unrolled.explanation.networks.find_network import FoundNetworks
from unrolled.explanation.request import Request
from unrolled.held_forward.operations.operands import holds_numbers
from unrolled.model_runs.nested_tensors import copy_tensors, leaves, rebuilt
from unrolled.model_runs.preserve_model import preserved
from unrolled.user_models.all_modules import all_modules
from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = ["first_states_read"]


def first_states_read(model: nn.Module, networks: FoundNetworks, asked: Request) -> tuple[bool, list[str]]:
    """Tell whether first states are computed of numbers of the arguments, and name the tables whose vectors they read.

    Three things do not count: a state that is an argument itself, what other opened networks return, and vectors that a
    model looks up by numbers of its own.
    """
    given, places = with_gradients(asked.args, asked.kwargs)
    states, tracer = _FirstStates(networks), TracedVectors()
    try:
        with preserved(model, asked.seed), torch.enable_grad(), Attached(), states.kept(model):
            tracer.begin_run(model)
            opened, named = tracer.open_call(*given)
            with tracer:
                model(*opened, **named)
        passed = {each.untyped_storage().data_ptr() for _, each in leaves(given)}
        made = [each for each in states.found() if each.untyped_storage().data_ptr() not in passed]
        return depends(made, list(places.values())), tracer.tables_read(model, made)
    except Exception:  # a model may fail in any way where its arguments are differentiated
        return False, []


_LATEST = 8
"""How many of the last returned tensors are looked at first: a call mostly returns fewer."""


def _continues(state: Tensor, returned: list[Tensor]) -> bool:
    """Tell whether a state depends on what a network has returned: mostly by its latest call, which is told quickly."""
    return depends([state], returned[-_LATEST:]) or depends([state], returned[:-_LATEST])


class _FirstStates:
    """Keeps the states that each network begins with, and takes the gradient away from what it returns.

    A further call begins anew if its state depends on nothing that the network has returned.
    """

    def __init__(self, networks: FoundNetworks) -> None:
        self.networks = networks
        self._begun: dict[str, list[Tensor]] = {}
        self._returned: dict[str, list[Tensor]] = {}

    def kept(self, model: nn.Module) -> AbstractContextManager[None]:
        """Keep them until the end of a block."""
        modules = all_modules(model)
        return replaced_attributes(
            (modules[path], self.networks.methods[path], self._cut(path, modules[path]))
            for path in self.networks.opened
        )

    def found(self) -> list[Tensor]:
        """Return those of all networks."""
        return [each for of_network in self._begun.values() for each in of_network]

    def _cut(self, path: str, module: nn.Module) -> Callable[..., object]:
        method = getattr(module, self.networks.methods[path])
        signature, form = inspect.signature(method), self.networks.steps.get(path)

        def called(*own: object, **named: object) -> object:
            bound = signature.bind(*own, **named).arguments
            first = (next(iter(bound)),)  # what a network of torch reads at its steps
            found = leaves(dict(bound))
            states = [each for place, each in found if (place in form.state if form else place[:1] != first)]
            begun, returned = self._begun.setdefault(path, []), self._returned.setdefault(path, [])
            with torch._C.DisableTorchFunction():
                begun += [each for each in states if not _continues(each, returned)]
                result = copy_tensors(method(*own, **named))
                returned += (each.requires_grad_() for _, each in leaves(result) if holds_numbers(each))
                return rebuilt(result, {place: each.clone() for place, each in leaves(result)})

        return called
