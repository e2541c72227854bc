"""Explain a model: find its networks, and open the one that is called once, else all calls of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from unrolled.decomposition.opening.network_cells import Network
from unrolled.explanation.calls.by_calls import explain_calls
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.explanations import Explanations
from unrolled.explanation.further_runs.notes_by_runs import NotesByRuns
from unrolled.explanation.infinite_weights import infinite_weights_named
from unrolled.explanation.named_failures import named_failures
from unrolled.explanation.networks.find_network import FoundNetworks, find_networks, notes_of_steps_around
from unrolled.explanation.networks.own_forwards import NoKernelError
from unrolled.explanation.networks.python_modules import python_modules
from unrolled.explanation.one_call import explain_one_call
from unrolled.explanation.readout.record_forward import NotOneCallError
from unrolled.explanation.request import Request
from unrolled.explanation.targets.arguments_beside import note_arguments_beside
from unrolled.explanation.targets.output_kind import kind_note
from unrolled.explanation.thread_count import one_thread_if_small
from unrolled.held_forward.runs_that_fail import with_factors_as_they_were
from unrolled.linalg.freed_memory import keep_freed_memory
from unrolled.model_runs.eval_mode import without_autocast
from unrolled.model_runs.nested_tensors import copy_tensors
from unrolled.model_runs.preserve_model import preserved
from unrolled.user_models.all_modules import all_modules

__all__ = ["explain_model"]


@torch.inference_mode(mode=False)  # it needs gradients, also if its caller has switched them off
def explain_model(model: nn.Module, asked: Request) -> Explanations:
    """Explain every example of a model's output: by the one call of its network, else by all calls of its networks."""
    with infinite_weights_named(model), without_autocast():
        try:
            return _explain_by_class(model, asked)
        except NoKernelError as error:
            return _explain_by_class(model, asked, error.paths)


def _explain_by_class(model: nn.Module, asked: Request, without_kernel: frozenset[str] = frozenset()) -> Explanations:
    """Take modules for what their classes say, except ``without_kernel``, which compute their steps themselves."""
    with python_modules(model, asked.args, asked.kwargs, without_kernel) as python:
        run = _observed_run(python.model, asked)
        networks = find_networks(python.model, python.named(asked.rnn), run, without_kernel)
        found = with_factors_as_they_were(partial(_explain_python, python.model, networks, asked))
        further = NotesByRuns(python.model, networks, asked, run, len(found))
        of_target = note_arguments_beside(asked.wanted.target, run, asked.args, asked.kwargs)
        before = (*python.notes, *notes_of_steps_around(networks), *of_target)
        noted = (
            replace(each, notes=(*before, *kind_note(each.target, python.model), *each.notes, *further.of(each)))
            for each in found
        )
        return Explanations(tuple(noted))


def _explain_python(model: nn.Module, networks: FoundNetworks, asked: Request) -> Sequence[Explanation]:
    """Explain a model of Python modules."""
    keep_freed_memory()
    one_thread = one_thread_if_small(model, (asked.args, asked.kwargs), passes=6.0)
    with preserved(model, asked.seed) as generators, one_thread:
        modules = all_modules(model)
        opened = [modules[path] for path in networks.opened]
        try:
            if len(opened) != 1 or not isinstance(opened[0], Network) or asked.call is not None:
                raise NotOneCallError("a ray opens one network of several steps, called once")
            return explain_one_call(model, opened[0], asked, generators)
        except NotOneCallError as error:
            if asked.readout == "ray":
                raise NotOneCallError(f"{error}; choose readout='held'") from None
            return explain_calls(model, networks, asked, generators)


def _observed_run(model: nn.Module, asked: Request) -> Callable[[], object]:
    """Return what runs a model once and leaves it as it was."""

    def run() -> object:
        with preserved(model, asked.seed), torch.no_grad(), named_failures(model, asked.arguments):
            args, kwargs = copy_tensors((asked.args, asked.kwargs))
            return model(*args, **kwargs)

    return run
