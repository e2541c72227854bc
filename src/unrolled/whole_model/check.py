"""The function :func:`unrolled.check`: what of a model can be opened, by which call, at what cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.cells.recurrent import Recurrent
from unrolled.decomposition.nested_tensors import copy_tensors
from unrolled.decomposition.preserve_model import preserved
from unrolled.errors import UnrolledError
from unrolled.explanation.api import explain_batch
from unrolled.explanation.model_arguments import model_arguments
from unrolled.explanation.networks.compiled_as_python import compiled_as_python
from unrolled.explanation.networks.find_network import has_recurrent_name
from unrolled.explanation.networks.seen_steps import found_steps, seen_steps
from unrolled.explanation.networks.written_networks import written_networks
from unrolled.explanation.readout.run_model import named_failures
from unrolled.explanation.targets.likely_targets import has_classes, likely_targets
from unrolled.explanation.targets.select_target import Target
from unrolled.held_forward.this_thread import in_this_thread
from unrolled.report.check_table import check_to_text
from unrolled.whole_model.account import account

__all__ = ["Check", "CheckedPart", "check"]


@dataclass(frozen=True)
class CheckedPart:
    """One recurrent module of a model, or the whole model."""

    path: str
    """The module's path, or ``"whole model"``."""
    kind: str
    """Its type, with layers and directions where it has several."""
    calls: int
    """How often one run of the model calls it."""
    reads: str
    """What its first call receives."""
    opens: bool
    """Whether the call below gives an explanation or an account."""
    call: str
    """The call that opens it."""
    cost: str
    """What that call takes beside the time of the model."""
    why: str
    """Why it does not open, or the notes of what it gives; empty if there is nothing to say."""


@dataclass(frozen=True)
class Check:
    """What of a model can be opened; ``print(check)`` shows it as a table.

    Example:
        >>> import torch, unrolled
        >>> class Classifier(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embed, self.rnn = torch.nn.Embedding(9, 4), torch.nn.GRU(4, 6, batch_first=True)
        ...         self.head = torch.nn.Linear(6, 2)
        ...     def forward(self, tokens):
        ...         return self.head(self.rnn(self.embed(tokens))[0][:, -1])
        >>> found = unrolled.check(Classifier(), torch.tensor([[1, 2, 3]]))
        >>> [(part.path, part.opens) for part in found.parts]
        [('rnn', True), ('whole model', True)]
    """

    parts: tuple[CheckedPart, ...]
    """Every recurrent module, and the whole model last."""

    @property
    def opens(self) -> bool:
        """Whether any part opens."""
        return any(part.opens for part in self.parts)

    def render(self, width: int = 100) -> str:
        """Return the table as text of at most ``width`` columns."""
        rows = [
            (part.path, part.kind, str(part.calls), part.reads, "yes" if part.opens else "no", part.cost or "–")
            for part in self.parts
        ]
        remarks = [
            (part.path, "; ".join(each for each in (part.call if part.opens else "", part.why) if each))
            for part in self.parts
        ]
        return check_to_text(rows, [(path, text) for path, text in remarks if text], width)

    def __str__(self) -> str:
        return self.render()


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
    compiled = isinstance(model, torch.jit.ScriptModule)  # which nothing can look into
    seen, output = ({}, None) if compiled else _calls(model, args, given, seed)
    options: dict[str, Any] = {"target": target, "seed": seed, "model_kwargs": given}
    aim, own = "", target is None and not compiled
    if own and not has_classes(output):
        options, aim = _aimed(model, args, options, output, {next(iter(seen), None), None})
    parts = []
    modules = dict(model.named_modules())
    for path, reads in seen.items():
        module = modules[path]
        way = f", rnn={path!r}" if len(seen) > 1 else ""
        parts.append(
            _tried(
                partial(explain_batch, model, *args, rnn=path or None, max_order=1, **options),
                model,
                path or "the model",
                _kind(module),
                reads,
                f"unrolled.explain(model, …{way}{aim})",
                _ngrams(module, reads),
            )
        )
    if own and not aim and isinstance(output, Tensor) and output.dim() < 2:  # one number for each example
        options, aim = _aimed(model, args, options, output, {None})
    whole = _tried(
        lambda: [account(model, *args, **options)],
        model,
        "whole model",
        type(model).__name__,
        [(args, given)],
        f"unrolled.account(model, …{aim})",
        "",
    )
    return Check((*parts, whole))


def _aimed(
    model: nn.Module, args: tuple[object, ...], options: dict[str, Any], output: object, paths: Collection[str | None]
) -> tuple[dict[str, Any], str]:
    """Return the options with the likeliest target that works, for a recurrent module first, and how it is written."""
    tries = [(path, code, likely) for path in paths for code, likely in likely_targets(output)]
    tries.sort(key=lambda each: each[0] is None)
    for path, code, likely in tries:
        if _works(model, args, {**options, "target": likely}, path):
            return {**options, "target": likely}, f", target={code}"
    return options, ""


def _works(model: nn.Module, args: tuple[object, ...], options: dict[str, Any], path: str | None) -> bool:
    """Whether a target fits the examples of the first recurrent module, or the whole model where there is none."""
    try:
        if path is None:
            account(model, *args, **options)
        else:
            explain_batch(model, *args, rnn=path or None, max_order=1, **options)
    except UnrolledError:
        return False
    return True


def _recurrent_modules(model: nn.Module, steps: Collection[str]) -> list[str]:
    """Find what is recurrent: by what it is, by how a run calls it, or by its type's name; of nested ones the inner."""
    modules = dict(model.named_modules())
    known = [path for path, each in modules.items() if isinstance(each, nn.RNNBase | nn.RNNCellBase | Recurrent)]
    known = [path for path in known if not any(_inside(path, o) and isinstance(modules[o], Recurrent) for o in known)]
    known += [path for path in steps if not any(path == each or _inside(each, path) for each in known)]
    written = written_networks(model)
    named = [path for path, each in modules.items() if path in written or has_recurrent_name(_type_name(each))]
    known += [
        path
        for path in named
        if not any(path == each or _inside(each, path) or _inside(path, each) for each in known)
        and not any(_inside(each, path) for each in named)
    ]
    return [path for path in modules if path in known]


def _inside(path: str, outer: str) -> bool:
    return path != outer and path.startswith(f"{outer}." if outer else "")


def _type_name(module: nn.Module) -> str:
    return str(getattr(module, "original_name", type(module).__name__))


def _kind(module: nn.Module) -> str:
    layers, both = getattr(module, "num_layers", 1), getattr(module, "bidirectional", False)
    parts = [_type_name(module)]
    if isinstance(layers, int) and layers > 1:
        parts.append(f"{layers} layers")
    if both:
        parts.append("both directions")
    return ", ".join(parts)


def _calls(model: nn.Module, args: Any, kwargs: Any, seed: int | None) -> tuple[dict[str, list[Any]], object]:
    """Run the model once, and collect what every recurrent module receives, and what the model returns."""
    received: dict[str, list[Any]] = {path: [] for path, _ in model.named_modules()}

    outputs: list[object] = []

    def run() -> None:
        with preserved(model, seed), compiled_as_python(model), torch.no_grad():
            hooks = [
                module.register_forward_pre_hook(
                    in_this_thread(lambda _, given, named, path=path: received[path].append((given, named))),
                    with_kwargs=True,
                )
                for path, module in model.named_modules()
                if not isinstance(module, torch.jit.ScriptModule)
            ]
            try:
                with named_failures((*args, *kwargs.values())):
                    outputs.append(model(*copy_tensors(args), **copy_tensors(kwargs)))
            finally:
                for hook in hooks:
                    hook.remove()

    seen = seen_steps(model, run)
    steps = found_steps(seen)
    for each in seen:
        if each.path in steps and steps[each.path].method == each.method:
            received[each.path] = [(tuple(given.values()), {}) for given, _ in each.calls]
    return {path: received[path] for path in _recurrent_modules(model, steps)}, outputs[-1]


def _shape(given: Any) -> str:
    """Describe the first tensor of a call."""
    values = [*given[0], *given[1].values()]
    for value in values:
        if isinstance(value, PackedSequence):
            return (
                f"packed, {len(value.batch_sizes)} steps, {len(value.data)} vectors of {value.data.shape[-1]} numbers"
            )
        if isinstance(value, Tensor):
            return str(tuple(value.shape))
    return "no tensor"


def _ngrams(module: nn.Module, calls: list[Any]) -> str:
    """Say how many n-grams a call explains."""
    if len(calls) != 1:
        return ""
    value = next((each for each in (*calls[0][0], *calls[0][1].values()) if isinstance(each, Tensor)), None)
    if value is None or value.dim() != 3:
        return ""
    time = value.shape[1 if getattr(module, "batch_first", False) else 0]
    return f", {time * (time + 1) // 2:,} n-grams a direction"


@contextmanager
def _counted(model: nn.Module) -> Iterator[list[int]]:
    """Count the runs of a model."""
    runs: list[int] = []
    if isinstance(model, torch.jit.ScriptModule):
        yield runs
        return
    hook = model.register_forward_pre_hook(in_this_thread(lambda *_: runs.append(1)))
    try:
        yield runs
    finally:
        hook.remove()


def _tried(
    call: Callable[[], Any], model: nn.Module, path: str, kind: str, reads: list[Any], how: str, ngrams: str
) -> CheckedPart:
    """Open a part, and describe what came of it."""
    described = _shape(reads[0]) if reads else "nothing"
    try:
        with _counted(model) as runs:
            found = call()
    except UnrolledError as error:
        return CheckedPart(path, kind, len(reads), described, False, how, "", str(error))
    notes = "; ".join(dict.fromkeys(note for each in found for note in each.notes))
    cost = f"{len(runs)} runs of the model{ngrams}"
    return CheckedPart(path, kind, len(reads), described, True, how, cost, notes)
