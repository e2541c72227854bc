"""The function :func:`unrolled.check`: what of a model can be opened, by which call, at what cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor, nn

from unrolled.errors import UnrolledError
from unrolled.explanation.api import explain_batch
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.explanations import Explanations
from unrolled.explanation.model_arguments import model_arguments
from unrolled.explanation.networks.python_modules import without_wrappers
from unrolled.explanation.targets.likely_targets import has_classes, likely_targets
from unrolled.explanation.targets.select_target import Target
from unrolled.model_runs.eval_mode import without_autocast
from unrolled.user_models.all_modules import all_modules
from unrolled.user_models.this_thread import in_this_thread
from unrolled.user_models.torch_script import is_scripted
from unrolled.whole_model.account import account
from unrolled.whole_model.check_result import Check, CheckedPart
from unrolled.whole_model.part_description import module_kind, ngrams_of, reads_of
from unrolled.whole_model.recurrent_calls import recurrent_calls
from unrolled.whole_model.result import Account

__all__ = ["check"]


@without_autocast()  # the calls that it tries switch it off
def check(
    model: nn.Module,
    *args: object,
    target: Target | None = None,
    seed: int | None = None,
    model_kwargs: Mapping[str, object] | None = None,
    **kwargs: object,
) -> Check:
    """Say what of a model can be opened, by which call, at what cost, and why the rest cannot.

    Every recurrent module is opened as :func:`unrolled.explain` would open it, up to its n-grams of one token, and the
    whole model as :func:`unrolled.account` would. The model is left as it was.

    Args:
        model: Any module.
        *args: The model's own positional arguments; short ones give a quick answer.
        target: As in :func:`unrolled.explain`. Of an output without classes that is left out, one number of each
            example is tried, and the call says which.
        seed: As in :func:`unrolled.explain`.
        model_kwargs: As in :func:`unrolled.explain`.
        **kwargs: The model's own keyword arguments.

    Returns:
        The answer for every recurrent module and for the whole model.

    Raises:
        UsageError: If the model does not take the arguments.

    Example:
        >>> import torch, unrolled
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        >>> found = unrolled.check(model, torch.randn(1, 3))
        >>> [(part.path, part.opens, part.call) for part in found.parts]
        [('whole model', True, 'unrolled.account(model, …)')]
    """
    given = model_arguments(model, args, kwargs, model_kwargs, {"target": target})
    calls = _Calls(model, args, {"seed": seed, "model_kwargs": given})
    compiled = is_scripted(model)  # which nothing can look into
    seen, output = ({}, None) if compiled else recurrent_calls(model, args, given, seed)
    of_modules = of_whole = _Aim(target)
    if target is None and not compiled:
        of_modules, of_whole = calls.likely_aims(output, list(seen)[:1])
    modules = all_modules(model)
    parts = []
    for path, received in seen.items():
        way = f", rnn={path!r}" if len(seen) > 1 else ""
        part = CheckedPart(
            path=path or "the model",
            kind=module_kind(modules[path]),
            calls=len(received),
            reads=reads_of(received),
            opens=False,
            call=f"unrolled.explain(model, …{way}{of_modules.code})",
            cost=ngrams_of(modules[path], received),  # the runs of the model are counted when it is tried
            why="",
        )
        parts.append(_tried(part, model, partial(calls.explain, path, of_modules)))
    whole = CheckedPart(
        path="whole model",
        kind=type(model).__name__,
        calls=1,
        reads=reads_of([(args, given)]),
        opens=False,
        call=f"unrolled.account(model, …{of_whole.code})",
        cost="",
        why="",
    )
    return Check((*parts, _tried(whole, model, lambda: [calls.account(of_whole)])))


@dataclass(frozen=True)
class _Aim:
    """A target, and how a call names it."""

    target: Target | None
    code: str = ""


@dataclass(frozen=True)
class _Calls:
    """The calls that open a model and its recurrent modules."""

    model: nn.Module
    args: tuple[object, ...]
    options: dict[str, Any]

    def explain(self, path: str, aim: _Aim) -> Explanations:
        """Explain every example up to the n-grams of one token of the recurrent module at a path."""
        named = {"rnn": path or None, "target": aim.target, **self.options}
        return explain_batch(self.model, *self.args, max_order=1, **named)

    def account(self, aim: _Aim) -> Account:
        """Account for the whole model."""
        return account(self.model, *self.args, target=aim.target, **self.options)

    def likely_aims(self, output: object, paths: Sequence[str]) -> tuple[_Aim, _Aim]:
        """Return what recurrent modules and the whole model are likely opened for, where the user names no target."""
        if not has_classes(output):
            both = self._likeliest_aim(output, paths)
            return both, both
        classes = _Aim(None)
        if isinstance(output, Tensor) and output.dim() < 2 and not _works(partial(self.account, classes)):
            return classes, self._likeliest_aim(output, [])
        return classes, classes

    def _likeliest_aim(self, output: object, paths: Sequence[str]) -> _Aim:
        """Return the likeliest target that works: by the recurrent modules at some paths, else by the whole model."""
        aims = [_Aim(likely, f", target={code}") for code, likely in likely_targets(output)]
        tries: list[tuple[_Aim, Callable[[], object]]] = [
            *((aim, partial(self.explain, path, aim)) for path in paths for aim in aims),
            *((aim, partial(self.account, aim)) for aim in aims),
        ]
        return next((aim for aim, call in tries if _works(call)), _Aim(None))


def _works(call: Callable[[], object]) -> bool:
    try:
        call()
    except UnrolledError:
        return False
    return True


def _tried(part: CheckedPart, model: nn.Module, call: Callable[[], Iterable[Explanation | Account]]) -> CheckedPart:
    """Return the part with the cost and the notes of its call, or with the reason why the call failed."""
    try:
        with _counted(model) as runs:
            found = call()
    except UnrolledError as error:
        return replace(part, cost="", why=str(error))
    notes = "; ".join(dict.fromkeys(note for each in found for note in each.notes))
    cost = ", ".join(each for each in (f"{len(runs)} runs of the model", part.cost) if each)
    return replace(part, opens=True, cost=cost, why=notes)


@contextmanager
def _counted(model: nn.Module) -> Iterator[list[int]]:
    """Count the runs of a model, or of that in a wrapper, which is what is opened."""
    runs: list[int] = []
    model = without_wrappers(model)
    if is_scripted(model):
        yield runs
        return
    with model.register_forward_pre_hook(in_this_thread(lambda *_: runs.append(1))):
        yield runs
