"""What an error says where a model has no recurrent network, or what a user named is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from unrolled.decomposition.opening.recurrent_twin import quantised_kind
from unrolled.errors import kind_of
from unrolled.explanation.networks.as_cell import CellAdapter
from unrolled.explanation.networks.called_method import CalledMethod
from unrolled.explanation.networks.recurrent_names import has_recurrent_name
from unrolled.explanation.networks.scripted_modules import python_form, script_kind
from unrolled.user_models.torch_script import is_scripted

__all__ = ["called_once", "named_method", "no_step", "none_found"]


def called_once(seen: Sequence[CalledMethod]) -> str:
    """Say how to name what takes a state and is called once: one call does not show that it is a step."""
    once = [each for each in seen if len(each.calls) == 1 and each.form(asked=True) is not None]
    if not once:
        return ""
    step = next((each for each in once if each.method == "forward"), once[-1])
    path, method = step.path, step.method
    name = repr(path) if method == "forward" and path else f"unrolled.as_cell({path!r}, method={method!r})"
    return (
        f"{path or 'the model'}.{method} of {type(step.module).__name__} takes a state and is called once, which "
        f"does not show that it is a step: if it is, pass rnn={name}, or a sequence of several steps; if it is not, "
        "the model has no recurrent network, and unrolled.account opens it"
    )


def none_found(model: nn.Module, modules: dict[str, nn.Module]) -> str:
    """Say what a model lacks, and what to pass where a part of it is called a recurrent network."""
    for path, module in modules.items():
        if is_scripted(module):
            return f"no recurrent network in {type(model).__name__}; {_is_scripted(path, module)}"
    registered = set(map(id, model.modules()))
    for path, module in modules.items():
        if quantised_kind(module) is not None and id(module) not in registered:
            return (
                f"no recurrent network in {type(model).__name__}; {path} is quantised, and is opened where the model "
                "registers it: keep it in a torch.nn.ModuleList or a ModuleDict, or pass the model that it was "
                "quantised from"
            )
    written = [(path, module) for path, module in modules.items() if has_recurrent_name(module)]
    if written:
        return _without_steps(*written[-1])
    return (
        f"no recurrent network in {type(model).__name__}; expected a torch.nn.RNN, GRU, LSTM or a cell of these, "
        "one of unrolled.cells.recurrent, or a module that is called in a loop with its own state (rnn= names it): "
        "forward(x, h) that returns the next h, where a cell that keeps it in self.h, or beside x in one dictionary, "
        "does not show it; unrolled.account opens any other model"
    )


def _without_steps(path: str, module: nn.Module) -> str:
    return (
        f"{path or 'the model'} is {kind_of(module)} that computes its steps itself, "
        "and none of its modules is one step; write the step as a module or as a method step(x, state) that "
        f"its forward calls, or name it: rnn='{path + '.' if path else ''}cell' or rnn=unrolled.as_cell(…); "
        "unrolled.account opens it as it is"
    )


def named_method(name: str, modules: Mapping[str, nn.Module]) -> str:
    """Say how to name a step that is a method, if a name is that of one and of no module; empty otherwise."""
    path, _, method = name.rpartition(".")
    module = modules.get(path)
    if module is None or not callable(getattr(module, method, None)):
        return ""
    return (
        f"rnn is {name!r}, a method of {type(module).__name__} and no module; name a step that is a method by "
        f"rnn=unrolled.as_cell({path!r}, method={method!r}, state=…), with the names of the parameters that are it"
    )


def _is_scripted(path: str, module: torch.jit.ScriptModule) -> str:
    what = f"{path or 'the model'} is {script_kind(module)}, and what it computes cannot be seen"
    return f"{what}: {python_form(module, part=bool(path))}"


def no_step(path: str, module: nn.Module, adapter: CellAdapter | None) -> str:
    """Say why what a user named cannot be opened."""
    a_kind = kind_of(module)
    if is_scripted(module):
        return _is_scripted(path, module)
    if adapter is None and has_recurrent_name(module):
        return _without_steps(path, module)
    if adapter is None:
        return (
            f"rnn is {a_kind} that is no recurrent network inside the model: it has no torch.nn.RNN, GRU, LSTM or cell "
            "of these, and no step that receives a state and returns the next one, as forward(x, h) does (a state in "
            "self.h, or beside x in one dictionary, is not seen); name a step by "
            "rnn=unrolled.as_cell(module, method=…, state=…)"
        )
    if not callable(getattr(module, adapter.method, None)):
        return f"{path or 'the model'} is {a_kind} without a method {adapter.method!r}; expected the method of one step"
    named = ", ".join(map(repr, adapter.state)) or "none that is called a state"
    return (
        f"{path or 'the model'}.{adapter.method} of {type(module).__name__} was not called with a state; expected the "
        f"names of its parameters that are one in state=, found {named}"
    )
