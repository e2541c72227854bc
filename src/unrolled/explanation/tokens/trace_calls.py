"""Which token of which argument every line of a model's recurrent calls reads at each step.

The model runs once more. What each call reads keeps its gradient, and what each call returns has none, so that a line
is traced to what it reads itself; :mod:`unrolled.explanation.tokens.find_traces` does the rest. Ids that the model
makes in a way that cannot be followed, as those of words that it has generated, are known all the same where they are
looked up; which tokens of an argument they are is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.cells.batch_layout import read_batch
from unrolled.decomposition.held_networks.recorded_networks import FUSED
from unrolled.decomposition.held_networks.recurrent_rules import (
    RECURRENT,
    padded_batch,
    reads_packed,
)
from unrolled.decomposition.own_steps.own_step_rule import OWN_STEPS
from unrolled.decomposition.own_steps.step_calls import StepCall, real_form
from unrolled.decomposition.own_steps.step_tensors import StepTensors
from unrolled.explanation.networks.find_network import FoundNetworks
from unrolled.explanation.strands.lines import Line
from unrolled.explanation.strands.running_networks import RunningNetworks
from unrolled.explanation.strands.strand import Strand
from unrolled.explanation.tokens.find_traces import FoundTraces
from unrolled.explanation.tokens.sequences_apart import traces_apart
from unrolled.explanation.tokens.tracer import Tracer
from unrolled.explanation.tokens.traces import Traces
from unrolled.held_forward.operations.operation_names import name_of
from unrolled.model_runs.eval_mode import without_autocast
from unrolled.model_runs.nested_tensors import leaves, rebuilt

__all__ = ["trace_calls"]


class _CallTracer(Tracer):
    """Follows ids to the calls of recurrent networks, and keeps what these read, shape (time, batch, input).

    Args:
        networks: Paths of the networks.
    """

    def __init__(self, networks: Iterable[str]) -> None:
        super().__init__()
        self.networks, self.running = frozenset(networks), RunningNetworks()
        self.reads: list[Tensor] = []

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run an operation; the result of a recurrent call has no gradient, and nothing else takes one away."""
        name = name_of(func).name
        if name == "_set_grad_enabled":
            return None
        if name == "detach" and args[0].requires_grad:
            return args[0].clone()
        if name not in RECURRENT | OWN_STEPS or self.running.now[0] not in self.networks:
            return super().run_operation(func, args, options)
        result = func(*args, **options)
        self.reads.append(self._read_by_step(args[0], args[1], result) if name in OWN_STEPS else _read(name, args))
        return rebuilt(result, {place: each.detach() for place, each in leaves(result)})

    def _read_by_step(self, call: StepCall, tensors: Sequence[Tensor], result: Any) -> Tensor:
        """Put what a step of the user's own reads beside its state side by side; ids that it reads are vectors."""
        given, found = dict(zip(call.places, tensors, strict=True)), {p: real_form(each) for p, each in leaves(result)}
        step = StepTensors(call, given, found).forms[0]
        batch = step.batch or 1
        parts = [torch.zeros(batch, 1, device=tensors[0].device if tensors else "cpu")]
        for place, each in given.items():
            if place in call.form.state or isinstance(each, nn.Parameter) or each.numel() % batch:
                continue
            if each in self.positions:
                each = self.leaf(torch.ones(*each.shape, 1, device=each.device), each, None, -1)
            if each.is_floating_point() and (step.alone or (each.dim() > 0 and len(each) == batch)):
                parts.append(each.reshape(batch, -1))
        return torch.cat(parts, dim=-1)[None]


def _read(name: str, args: tuple[Any, ...]) -> Tensor:
    """Return what an operation of torch, or a network of ours, reads."""
    if name == "recurrent_network":
        network, inputs, _, lengths = args
        return read_batch(inputs, network.input_size, network.batch_first, lengths)[0]
    if name not in FUSED:
        step: Tensor = args[0]
        return step[None]
    if reads_packed(args):
        return padded_batch(*args[:2])[0]
    inputs, batch_first = args[0], args[-1]
    return inputs.transpose(0, 1) if batch_first else inputs


def trace_calls(
    model: nn.Module,
    lines: Sequence[Line],
    examples: Sequence[Tensor],
    networks: FoundNetworks,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> list[Traces]:
    """Trace the tokens of the arguments to the steps of every line.

    Args:
        model: In evaluation mode.
        lines: Of a held run of it.
        examples: The example that reads each sequence of each line, -1 for none. What nobody reads is not traced: it
            may read the same vectors, as the windows of a series do.
        networks: Its recurrent networks; the calls of those that are opened are lines.
        args: The model's positional arguments.
        kwargs: Its keyword arguments.
    """
    tracer = _CallTracer(networks.opened)
    tracer.begin_run(model)
    given, named = tracer.open_call(args, kwargs)
    try:
        with (
            torch.enable_grad(),
            without_autocast(),
            tracer.running.noted(model, networks.methods, networks.steps),
            tracer,
        ):
            model(*given, **named)
    except Exception:  # of any model: one that refuses to be followed has no traces, and is explained all the same
        return [Traces((), tracer.looked_up)] * len(lines)
    if not all(_reads_the_same(strand, tracer.reads) for line in lines for strand in line.levels[0]):
        return [Traces((), tracer.looked_up)] * len(lines)
    with torch.enable_grad():
        read = [
            line.over_steps(line.levels[0], {strand: tracer.reads[strand.call] for strand in line.levels[0]})
            for line in lines
        ]
        return [
            _traces(line.inside & (own >= 0).to(line.inside.device), each, tracer)
            for line, own, each in zip(lines, examples, read, strict=True)
        ]


def _reads_the_same(strand: Strand, reads: Sequence[Tensor]) -> bool:
    """Tell whether a strand's call reads as many steps and sequences in the traced run."""
    return strand.call < len(reads) and reads[strand.call].shape[:2] == strand.states.shape[:2]


def _traces(inside: Tensor, read: Tensor, tracer: _CallTracer) -> Traces:
    """Find the tokens of every argument that the steps of one line read; else the ids that the model made itself."""
    found = FoundTraces(tracer, read, inside)
    return found.of_made_ids() or traces_apart(found.of_arguments(), tracer, read, inside)
