"""What the first states of a model's networks are computed of: words, numbers of its arguments, or neither."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.decomposition.nested_tensors import copy_tensors, leaves
from unrolled.decomposition.preserve_model import preserved
from unrolled.explanation.networks.find_network import FoundNetworks
from unrolled.explanation.past_networks import Attached, with_gradients
from unrolled.explanation.tokens.tracer import Tracer
from unrolled.held_forward.all_modules import all_modules, all_parameters
from unrolled.held_forward.operation_names import name_of
from unrolled.held_forward.replaced_attributes import replaced_attributes

__all__ = ["first_states_read"]

_WITHOUT_TABLE = "tokens"
"""What vectors are of that are made of tokens without a table, as one-hot ones."""


def first_states_read(
    model: nn.Module,
    networks: FoundNetworks,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    seed: int | None,
) -> tuple[bool, list[str]]:
    """Tell whether first states are computed of numbers of the arguments, and name the tables whose vectors they read.

    A state that is an argument itself does not count, nor does what other opened networks make of their steps, nor
    vectors that a model looks up at places of its own choice.
    """
    given, places = with_gradients(args, kwargs)
    states, tracer = _FirstStates(networks), _TokenVectors()
    try:
        with preserved(model, seed), torch.enable_grad(), Attached(), states.kept(model):
            tracer.begin_run(model)
            opened, named = tracer.open_call(*given)
            with tracer:
                model(*opened, **named)
        passed = {each.untyped_storage().data_ptr() for _, each in leaves(given)}
        made = [each for each in states.found() if each.untyped_storage().data_ptr() not in passed]
        return _depends(made, list(places.values())), tracer.tables_read(model, made)
    except Exception:  # a model may fail in any way where its arguments are differentiated
        return False, []


class _FirstStates:
    """Keeps the states that each network reads at its first call, and takes the gradient away from what it returns."""

    def __init__(self, networks: FoundNetworks) -> None:
        self.networks = networks
        self._of_first_call: dict[str, list[Tensor]] = {}

    def kept(self, model: nn.Module) -> AbstractContextManager[None]:
        """Keep them until the end of a block."""
        modules = all_modules(model)
        return replaced_attributes(
            (modules[path], self.networks.methods[path], self._cut(path, modules[path]))
            for path in self.networks.opened
        )

    def found(self) -> list[Tensor]:
        """Return those of all networks."""
        return [each for of_network in self._of_first_call.values() for each in of_network]

    def _cut(self, path: str, module: nn.Module) -> Callable[..., object]:
        method = getattr(module, self.networks.methods[path])
        signature, form = inspect.signature(method), self.networks.steps.get(path)

        def called(*own: object, **named: object) -> object:
            bound = signature.bind(*own, **named).arguments
            first = (next(iter(bound)),)  # what a network of torch reads at its steps
            found = leaves(dict(bound))
            states = [each for place, each in found if (place in form.state if form else place[:1] != first)]
            self._of_first_call.setdefault(path, states)
            with torch._C.DisableTorchFunction():
                return copy_tensors(method(*own, **named))

        return called


class _TokenVectors(Tracer):
    """Makes leaves of the vectors of tokens; arguments of numbers have gradients already."""

    def open(self, value: Any) -> Any:
        """Return an argument as the model receives it."""
        return value if isinstance(value, Tensor) and value.is_floating_point() else super().open(value)

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run an operation; bags of vectors are vectors as well."""
        result = super().run_operation(func, args, options)
        if name_of(func).name == "embedding_bag" and args[0] in self.positions:
            return self.leaf(result, args[0], None, args[1].data_ptr())
        return result

    def tables_read(self, model: nn.Module, results: list[Tensor]) -> list[str]:
        """Name the tables of whose vectors for tokens of the arguments some results are computed."""
        names = {each.data_ptr(): name for name, each in all_parameters(model).items()}
        vectors: dict[str, list[Tensor]] = {}
        for each in self.sources:
            if bool((each.places >= 0).any()):
                vectors.setdefault(names.get(each.table, _WITHOUT_TABLE), []).append(each.leaf)
        return sorted(name for name, leaves_of_table in vectors.items() if _depends(results, leaves_of_table))


def _depends(results: list[Tensor], sources: list[Tensor]) -> bool:
    """Tell whether a gradient leads from results to sources."""
    results = [each for each in results if each.requires_grad]
    if not results or not sources:
        return False
    weights = [torch.linspace(1.0, 2.0, each.numel(), device="cpu").view(each.shape).to(each) for each in results]
    gradients = torch.autograd.grad(results, sources, weights, retain_graph=True, allow_unused=True)
    return any(each is not None and bool(each.any()) for each in gradients)
