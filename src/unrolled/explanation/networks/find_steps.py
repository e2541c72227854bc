"""Find the steps that users wrote themselves: modules that a model calls in a loop, with their own state.

A model is run once, and the calls of its methods are noted. A step is a method that receives what it returned at an
earlier call, or that names such an argument: ``forward(x, state)``, ``forward(x, h, c)``, ``step(x, state)``.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from torch import nn
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.overrides import BaseTorchFunctionMode

from unrolled.cells.recurrent import Recurrent
from unrolled.decomposition.own_steps.step_calls import StepForm
from unrolled.explanation.networks.as_cell import CellAdapter
from unrolled.explanation.networks.called_method import CalledMethod
from unrolled.model_runs.nested_tensors import leaves
from unrolled.user_models.all_modules import all_buffers, all_modules, all_parameters, is_within
from unrolled.user_models.replaced_attributes import replaced_attributes
from unrolled.user_models.torch_script import is_scripted

__all__ = ["called_methods", "found_steps", "named_step"]

_OF_MODULES = frozenset(vars(nn.Module))
"""Names of torch's own, none of which is a user's step."""


def called_methods(
    model: nn.Module,
    run: Callable[[], object],
    adapters: Iterable[CellAdapter] = (),
    owned: Collection[nn.Module] = (),
) -> list[CalledMethod]:
    """Run a model once, and list the methods that may be a step.

    Args:
        model: The model.
        run: Runs it.
        adapters: Methods that a user named.
        owned: Networks by their class that are the user's own.
    """
    wanted = [(each.module, each.method) for each in adapters]
    candidates = []
    for path, module in all_modules(model).items():
        asked = {method for which, method in wanted if which is module or which == path}
        known = isinstance(module, Recurrent | nn.RNNBase | nn.RNNCellBase) and module not in owned
        methods = () if known else _methods(module)
        for method in (*asked, *(name for name in methods if name not in asked)):
            parameters = _parameters(module, method)
            if len(parameters) > 1 or (method in asked and parameters):
                candidates.append(CalledMethod(path, module, method, parameters))
    with _noting_calls(candidates):
        run()
    # what has no parameter, such as a neuron that leaks at a fixed rate, is a step only if it receives its own result
    return [e for e in candidates if e.calls and (all_parameters(e.module) or e.receives_its_own)]


def found_steps(seen: Sequence[CalledMethod]) -> dict[str, StepForm]:
    """Return the steps among the methods that were seen, by path; of nested ones those that are called most often.

    Where a step calls one other step each time, as for zoneout, the outer one is the cell. Where it calls several, it
    is a stack.
    """
    forms = [(each, form) for each in seen if (form := each.form()) is not None]
    dropped: list[CalledMethod] = []
    for outer, _ in forms:
        if outer in dropped:
            continue
        inner = [each for each, _ in forms if each.inside(outer) and each not in dropped]
        # what a module of its own receives back unchanged is a state; by its name alone it may be that of the outer one
        sure = [each for each in inner if each.receives_its_own or not outer.receives_its_own]
        same = [each for each in inner if outer.inside(each)]  # another method of the same module
        below = {each.path for each in sure if each not in same}
        if any(len(each.calls) > len(outer.calls) for each in inner) or len(below) > 1:
            dropped.append(outer)
        else:
            dropped += inner
    return {each.path: _with_steps_inside(form, each, seen) for each, form in forms if each not in dropped}


def named_step(seen: Sequence[CalledMethod], path: str, adapter: CellAdapter | None) -> dict[str, StepForm]:
    """Return the step that a user named, or the steps inside the module that was named."""
    here = [each for each in seen if each.path == path]
    if adapter is not None:
        here = [each for each in here if each.method == adapter.method]
    for each in sorted(here, key=lambda each: -len(each.calls)):
        form = each.form(adapter.state if adapter else (), asked=True, adapted=adapter is not None)
        if form is not None:
            return {path: _with_steps_inside(form, each, seen)}
    return {each: form for each, form in found_steps(seen).items() if is_within(each, path)}


def _with_steps_inside(form: StepForm, step: CalledMethod, seen: Sequence[CalledMethod]) -> StepForm:
    """Keep the paths of the steps and cells that a step calls: they may open where it does not."""
    own = (each.path for each in seen if each.path != step.path and each.inside(step) and each.form() is not None)
    parts = all_modules(step.module).items()
    cells = (f"{step.path}.{name}".strip(".") for name, each in parts if isinstance(each, nn.RNNCellBase))
    return replace(form, inside=tuple(dict.fromkeys((*own, *cells))))


def _methods(module: nn.Module) -> Iterator[str]:
    """List the methods of a user's module that may be a step."""
    kind = type(module)
    if kind.__module__.startswith("torch.") or is_scripted(module):
        return
    # most have one of their own: only others are searched for kept ones
    if next(module.parameters(), None) is None and not (all_parameters(module) or all_buffers(module)):
        return
    names = dict.fromkeys(name for base in reversed(kind.__mro__) for name in vars(base))
    of_keras = kind.forward.__module__.startswith("keras.")  # which calls ``call``
    for name in names:
        may_be = name == "forward" or (name == "call" and of_keras)
        may_be |= "step" in name.lower() and name not in _OF_MODULES
        if may_be and isinstance(inspect.getattr_static(module, name, None), types.FunctionType):
            yield name


def _parameters(module: nn.Module, method: str) -> tuple[str, ...]:
    """Return the names of a method's parameters, none if it has no signature."""
    try:
        parameters = inspect.signature(getattr(module, method)).parameters
    except (TypeError, ValueError, AttributeError):
        return ()
    return tuple(parameters)


@contextmanager
def _noting_calls(candidates: Sequence[CalledMethod]) -> Iterator[None]:
    """Note the calls of methods until the end of the block."""
    stand_ins = ((each.module, each.method, _noted(each)) for each in candidates)
    with replaced_attributes(stand_ins), BaseTorchFunctionMode():  # under a mode torch.vmap is a loop
        yield


def _noted(step: CalledMethod) -> Callable[..., Any]:
    function = getattr(step.module, step.method)
    signature = inspect.signature(function)

    def noted(*args: Any, **kwargs: Any) -> Any:
        try:
            given: Mapping[str, Any] = signature.bind(*args, **kwargs).arguments
        except TypeError:  # which the function says better
            return function(*args, **kwargs)
        received = dict(leaves(given))
        result = function(*args, **kwargs)
        returned = dict(leaves(result))
        if not any(map(is_functorch_wrapped_tensor, (*received.values(), *returned.values()))):  # which has no memory
            step.calls.append((received, returned))
        return result

    return noted
