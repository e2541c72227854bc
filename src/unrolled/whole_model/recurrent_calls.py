"""The recurrent modules of a model, and what each receives in one run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack

import torch
from torch import nn

from unrolled.cells.recurrent import Recurrent
from unrolled.explanation.named_failures import named_failures
from unrolled.explanation.networks.compiled_as_python import compiled_as_python
from unrolled.explanation.networks.find_network import RECURRENT_MODULES
from unrolled.explanation.networks.find_steps import called_methods, found_steps
from unrolled.explanation.networks.keras_as_steps import keras_as_steps
from unrolled.explanation.networks.recurrent_names import has_recurrent_name
from unrolled.model_runs.nested_tensors import copy_tensors
from unrolled.model_runs.preserve_model import preserved
from unrolled.user_models.all_modules import all_modules, is_within
from unrolled.user_models.this_thread import in_this_thread
from unrolled.user_models.torch_script import is_scripted
from unrolled.whole_model.part_description import CallArguments

__all__ = ["recurrent_calls"]


def recurrent_calls(
    model: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object], seed: int | None
) -> tuple[dict[str, list[CallArguments]], object]:
    """Run a model once; return what each of its recurrent modules receives, by path, and what the model returns."""
    received: dict[str, list[CallArguments]] = {path: [] for path in all_modules(model)}
    outputs: list[object] = []

    def run() -> None:
        # their stand-ins stand outside: what is preserved comes back at the start of a run
        with (
            compiled_as_python(model),
            keras_as_steps(model),
            preserved(model, seed),
            torch.no_grad(),
            ExitStack() as hooks,
        ):
            for path, module in all_modules(model).items():
                if not is_scripted(module):
                    receives = in_this_thread(lambda _, given, named, path=path: received[path].append((given, named)))
                    hooks.enter_context(module.register_forward_pre_hook(receives, with_kwargs=True))
            with named_failures(model, (*args, *kwargs.values())):
                given, named = copy_tensors((args, kwargs))
                outputs.append(model(*given, **named))

    seen = called_methods(model, run)
    steps = found_steps(seen)
    for each in seen:
        if each.path in steps and steps[each.path].method == each.method:
            received[each.path] = [(tuple(given.values()), {}) for given, _ in each.calls]
    registered = dict(model.named_modules())
    recurrent = [path for path in _recurrent_modules(model, steps) if path in registered or received[path]]
    return {path: received[path] for path in recurrent}, outputs[-1]


def _recurrent_modules(model: nn.Module, steps: Collection[str]) -> list[str]:
    """Find what is recurrent: by what it is, by how a run calls it, or by its type's name; of nested ones the inner."""
    modules = all_modules(model)
    known = [path for path, each in modules.items() if isinstance(each, RECURRENT_MODULES)]
    ours = [path for path in known if isinstance(modules[path], Recurrent)]
    known = [path for path in known if not any(path != each and is_within(path, each) for each in ours)]
    known += [path for path in steps if not any(is_within(each, path) for each in known)]
    named = [path for path, each in modules.items() if has_recurrent_name(each)]
    known += [
        path
        for path in named
        if not any(is_within(each, path) or is_within(path, each) for each in known)
        and not any(path != each and is_within(each, path) for each in named)
    ]
    return [path for path in modules if path in known]
