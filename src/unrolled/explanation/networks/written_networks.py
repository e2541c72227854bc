"""A network that a user wrote with the weights of torch.nn's: torch.nn's own takes its place where it gives the same.

Such a class holds ``weight_ih_l0``, ``weight_hh_l0`` … and runs its own loop. What it received and returned in one run
of the model says in which form torch.nn's results are to be given; if they differ in value, it is left as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.decomposition.opening.parity import Parity
from unrolled.decomposition.opening.recurrent_twin import networks_with_weights
from unrolled.model_runs.nested_tensors import Place, copy_tensors, leaves, rebuilt
from unrolled.user_models.all_modules import all_modules
from unrolled.user_models.this_thread import in_this_thread
from unrolled.user_models.torch_script import is_scripted

__all__ = ["RecordedCall", "recorded_calls", "written_networks", "written_twin"]

_TWIN_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
"""How far torch.nn's result may be from the module's, relative to its size.

It is closer than :data:`unrolled.decomposition.opening.parity.PARITY`: another network with these weights must not be
taken for torch.nn's.
"""

RecordedCall = tuple[Mapping[str, Any], Any]
"""The arguments of a call by name, and its result."""

Form = Callable[[Tensor, Sequence[Tensor]], Tensor]
"""Takes torch.nn's outputs, with the batch second, and final states to one tensor of a result."""

_FORMS: tuple[Form, ...] = (
    lambda outputs, _: outputs,
    lambda outputs, _: outputs.transpose(0, 1),
    lambda _, finals: finals[0],
    lambda _, finals: finals[-1],
    lambda _, finals: finals[0][-1],
    lambda _, finals: finals[-1][-1],
    lambda _, finals: finals[0].transpose(0, 1),
    lambda _, finals: finals[-1].transpose(0, 1),
    lambda outputs, _: outputs[-1],
)
"""What classes return: the outputs, h, c, those of the top layer, with the batch first or second."""


def written_networks(model: nn.Module, without_kernel: Collection[str]) -> dict[str, nn.Module]:
    """Return the modules of users that hold the weights of a recurrent network by torch.nn's names.

    Of torch's networks by their class, those at the paths ``without_kernel`` are a user's.
    """
    return {
        path: module
        for path, module in all_modules(model).items()
        if not is_scripted(module)
        and (path in without_kernel or not isinstance(module, nn.RNNBase))
        and {"weight_ih_l0", "weight_hh_l0"} <= module._parameters.keys()
        and not (module._forward_hooks or module._forward_pre_hooks)
    }


@contextmanager
def recorded_calls(modules: Sequence[nn.Module]) -> Iterator[dict[nn.Module, list[RecordedCall]]]:
    """Record what modules receive and return until the end of the block."""
    calls: dict[nn.Module, list[RecordedCall]] = {module: [] for module in modules}

    def record(module: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
        calls[module].append((copy_tensors(dict(bound.arguments)), copy_tensors(result)))

    with ExitStack() as hooks:
        for module in modules:
            hooks.enter_context(module.register_forward_hook(in_this_thread(record), with_kwargs=True))
        yield calls


def written_twin(module: nn.Module, calls: Sequence[RecordedCall]) -> nn.Module | None:
    """Return torch.nn's network in the form of a user's module; None if it does not give what the module gave."""
    if not calls:
        return None
    for network in networks_with_weights(dict(module.named_parameters())):
        for batch_first in (True, False):
            twin = _in_the_form(network, batch_first, module, calls[0])
            if twin is not None and all(twin.gives(*call) for call in calls):
                return twin.eval().requires_grad_(False)
    return None


class _WrittenNetwork(nn.Module):
    """torch.nn's network with the arguments and results of a user's module."""

    def __init__(
        self,
        network: nn.RNNBase,
        batch_first: bool,
        signature: inspect.Signature,
        reads: Place,
        template: Any,
        forms: Mapping[Place, Form],
    ) -> None:
        super().__init__()
        self.network, self.batch_first = network, batch_first
        self.signature, self.reads, self.template, self.forms = signature, reads, template, forms

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run torch.nn's network."""
        return self.result(self.signature.bind(*args, **kwargs).arguments)

    def result(self, arguments: Mapping[str, Any]) -> Any:
        """Give the results in the user's form."""
        outputs, finals = _run(self.network, self.batch_first, arguments, self.reads)
        return rebuilt(self.template, {place: form(outputs, finals) for place, form in self.forms.items()})

    def gives(self, arguments: Mapping[str, Any], result: Any) -> bool:
        """Tell whether the results are those of the user's module."""
        try:
            found = dict(leaves(self.result(arguments)))
        except (RuntimeError, ValueError, IndexError):
            return False
        expected = dict(leaves(result))
        return found.keys() == expected.keys() and all(_equal(found[place], expected[place]) for place in found)


def _in_the_form(
    network: nn.RNNBase, batch_first: bool, module: nn.Module, call: RecordedCall
) -> _WrittenNetwork | None:
    """Put torch.nn's network into a user's form."""
    arguments, result = call
    reads = next((place for place, each in leaves(arguments) if each.dim() == 3 and each.is_floating_point()), None)
    if reads is None:
        return None
    try:
        outputs, finals = _run(network, batch_first, arguments, reads)
    except (RuntimeError, ValueError, IndexError):
        return None
    forms = {
        place: next((form for form in _FORMS if _equal(form(outputs, finals), each)), None)
        for place, each in leaves(result)
    }
    known = {place: form for place, form in forms.items() if form is not None}
    if not forms or len(known) < len(forms):
        return None
    return _WrittenNetwork(network, batch_first, inspect.signature(module.forward), reads, result, known)


def _run(
    network: nn.RNNBase, batch_first: bool, arguments: Mapping[str, Any], reads: Place
) -> tuple[Tensor, Sequence[Tensor]]:
    """Run torch.nn's network; return its outputs, with the batch second, and its final states."""
    given = dict(leaves(arguments))
    inputs = given.pop(reads)
    inputs = inputs.transpose(0, 1) if batch_first else inputs
    count = network.num_layers * (2 if network.bidirectional else 1)
    states = [each.reshape(count, inputs.shape[1], -1) for each in given.values() if each.is_floating_point()]
    state = None if not states else (states[0], states[1]) if isinstance(network, nn.LSTM) else states[0]
    outputs, final = network(inputs, state)
    return outputs, final if isinstance(final, tuple) else (final,)


def _equal(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype or one.dtype not in _TWIN_TOLERANCE:
        return False
    parity = Parity.of(one, other, _TWIN_TOLERANCE[one.dtype])
    return parity.gap <= parity.precision * parity.size  # small states are no closer to those of another network
