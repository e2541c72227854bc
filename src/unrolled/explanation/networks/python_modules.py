"""A model as Python modules: wrappers are taken off; what was scripted, traced or written by hand may have a twin.

The rules of a held forward meet operations that Python calls. What was compiled runs elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.fx import GraphModule

from unrolled.decomposition.opening.recurrent_twin import linear_twin, quantised_kind, recurrent_twin
from unrolled.errors import UnsupportedOperationError
from unrolled.explanation.networks.compiled_as_python import compiled_as_python
from unrolled.explanation.networks.keras_as_steps import keras_as_steps
from unrolled.explanation.networks.outputs_of_twins import compare_with_twins
from unrolled.explanation.networks.scripted_modules import python_form, script_kind
from unrolled.explanation.networks.written_networks import RecordedCall, recorded_calls, written_networks, written_twin
from unrolled.model_runs.eval_mode import eval_mode
from unrolled.model_runs.nested_tensors import copy_tensors, tensors_in
from unrolled.user_models.all_modules import all_modules
from unrolled.user_models.this_thread import ONE_THREAD
from unrolled.user_models.torch_script import is_scripted

__all__ = ["PythonModel", "python_modules", "without_wrappers"]

_WHOLE = "the model"
T = TypeVar("T")


@dataclass(frozen=True)
class PythonModel:
    """A model whose forward is Python, for the time of a call."""

    model: nn.Module
    twins: Mapping[nn.Module, nn.Module]
    """The twin of each module that has one."""
    paths: Mapping[str, nn.Module]
    """The modules of the model as it was given, by path: a path may go through a wrapper."""
    notes: tuple[str, ...] = ()

    def named(self, rnn: T) -> T | nn.Module:
        """Return what names a recurrent network in this model: the module behind a wrapper, or a twin."""
        if isinstance(rnn, tuple | list):
            return cast("T", [self.named(each) for each in rnn])
        given: Any = rnn
        if isinstance(rnn, str) and rnn not in all_modules(self.model):
            given = self.paths.get(rnn, rnn)
        return self.twins.get(given, given) if isinstance(given, nn.Module) else rnn


@contextmanager
def python_modules(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], without_kernel: Collection[str] = ()
) -> Iterator[PythonModel]:
    """Yield a model as Python modules, and restore it at the end.

    Networks at the paths ``without_kernel`` are torch's by their class, and a user's by what their forward computes.

    Raises:
        UnsupportedOperationError: If it was scripted, traced or quantised in a way that cannot be followed.
        ParityError: If the twins give another output.
    """
    with ONE_THREAD, compiled_as_python(model), keras_as_steps(model):
        twins, paths = _Twins.of_model(model), all_modules(model)
        by_hand = written_networks(twins.top, without_kernel).values()
        written = {each for each in by_hand if each not in twins.of.values()}
        if not twins.places and not written:
            yield PythonModel(twins.top, twins.of, paths)
            return
        replaced = [child for _, _, child in twins.places if twins.of[child] is not without_wrappers(child)]
        with recorded_calls(list(written)) as calls:
            expected = _output(model, args, kwargs) if replaced or written else []
        replaced += twins.add_written(model, calls)
        with twins.in_place():
            notes: tuple[str, ...] = ()
            if replaced:
                run = partial(_output, twins.top, args, kwargs)
                notes = compare_with_twins(expected, run, replaced, [twins.of[each] for each in replaced])
            yield PythonModel(twins.top, twins.of, paths, notes)


@dataclass
class _Twins:
    """The modules that take the places of others."""

    top: nn.Module
    """The whole model, or its twin."""
    of: dict[nn.Module, nn.Module]
    """By the module whose twin it is."""
    places: list[tuple[nn.Module, str, nn.Module]] = field(default_factory=list)
    """The modules that have twins: the parent of each, and its name there."""

    @classmethod
    def of_model(cls, model: nn.Module) -> _Twins:
        """Find the modules inside wrappers, and the twins of those that are not Python."""
        top = _replacement(_WHOLE, model)
        twins = cls(top, {} if top is model else {model: top})
        for prefix, parent in list(top.named_modules()):
            if any(parent is part for twinned in twins.of for part in twinned.modules() if twinned is not model):
                continue  # a part of what has a twin
            for name, child in _children(parent):
                if (found := _replacement(f"{prefix}.{name}".strip("."), child)) is not child:
                    twins.places.append((parent, name, child))
                    twins.of[child] = found
        return twins

    def add_written(self, model: nn.Module, calls: Mapping[nn.Module, list[RecordedCall]]) -> list[nn.Module]:
        """Add the twins of networks that a user wrote; return those that have one, except the whole model."""
        found = []
        for parent in list(self.top.modules()):
            for name, child in _children(parent):
                if child in calls and (made := _written_twin(child, calls[child])) is not None:
                    self.places.append((parent, name, child))
                    self.of[child] = made
                    found.append(child)
        if self.top in calls and (made := _written_twin(self.top, calls[self.top])) is not None:
            self.of[model] = self.of[self.top] = self.top = made
        return found

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the twins in their places until the end of the block."""
        try:
            for parent, name, child in self.places:
                parent._modules[name] = self.of[child]
            yield
        finally:
            for parent, name, child in self.places:
                parent._modules[name] = child


def _children(parent: nn.Module) -> list[tuple[str, nn.Module]]:
    return [(name, child) for name, child in parent._modules.items() if child is not None]


def _written_twin(module: nn.Module, calls: list[RecordedCall]) -> nn.Module | None:
    with torch.no_grad(), eval_mode(module):
        return written_twin(module, calls)


def _is_exported(module: nn.Module) -> bool:
    """Whether torch.export made it: a graph of operations below those that Python calls."""
    return isinstance(module, GraphModule) and any(isinstance(node.target, OpOverload) for node in module.graph.nodes)


def _recurs(module: torch.jit.ScriptModule, name: str) -> bool:
    """Whether a scripted module is the model or has a recurrent network in it."""
    kinds = ("RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell")
    return name == _WHOLE or any(getattr(part, "original_name", "") in kinds for part in module.modules())


def _replacement(name: str, module: nn.Module) -> nn.Module:
    """Return the module inside a wrapper, or the twin of one that is not Python; else the module itself."""
    inner = without_wrappers(module)
    twin: nn.Module | None = recurrent_twin(inner)
    if twin is None:
        twin = linear_twin(inner)
    if twin is None and is_scripted(inner) and _recurs(inner, name):
        raise UnsupportedOperationError(
            f"{name} is a {script_kind(inner)} module, whose operations no rule can meet; {python_form(inner)}"
        )
    if _is_exported(inner):
        raise UnsupportedOperationError(
            f"{name} was made by torch.export, and its operations have no rules; pass the Python module that was "
            "exported; its weights are in state_dict()"
        )
    if twin is None and quantised_kind(inner) is not None:
        raise UnsupportedOperationError(
            f"{name} is a quantised {type(inner).__name__}, whose operations no rule can meet; pass the model that it "
            "was quantised from"
        )
    return inner if twin is None else twin


def without_wrappers(module: nn.Module) -> nn.Module:
    """Take off the wrappers of torch.compile, DataParallel and DistributedDataParallel."""
    while True:
        if isinstance(module, nn.DataParallel | nn.parallel.DistributedDataParallel):
            module = module.module
        elif type(module).__name__ == "OptimizedModule" and isinstance(getattr(module, "_orig_mod", None), nn.Module):
            module = cast("nn.Module", module._orig_mod)
        else:
            return module


def _output(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Tensor]:
    """Run a model once, and return the tensors of its output."""
    with torch.no_grad(), eval_mode(model):
        args, kwargs = copy_tensors((args, dict(kwargs)))
        return list(tensors_in(model(*args, **kwargs)))
