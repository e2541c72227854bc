"""Which token of which argument every line of a model's recurrent calls reads at each step.

The model runs once more. What each call reads keeps its gradient, and what each call returns has none, so that a line
is traced to what it reads itself. From there on it is as for one call: see
:mod:`unrolled.explanation.tokens.trace_tokens`. Ids that the model makes in a way that cannot be followed, as those of
words that it has generated, are known all the same where they are looked up; which tokens of an argument they are is
not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.cells.batch_layout import read_batch
from unrolled.decomposition.eval_mode import without_autocast
from unrolled.decomposition.nested_tensors import leaves, rebuilt
from unrolled.decomposition.own_step_rule import STEPS
from unrolled.decomposition.recorded_networks import FUSED
from unrolled.decomposition.recurrent_rules import RECURRENT, networks_as_operations
from unrolled.decomposition.step_calls import StepCall, steps_as_operations
from unrolled.explanation.networks.find_network import FoundNetworks
from unrolled.explanation.strands.lines import Line
from unrolled.explanation.strands.running_networks import RunningNetworks
from unrolled.explanation.strands.strand import Strand
from unrolled.explanation.tokens.tracer import TokenSource, Tracer
from unrolled.explanation.tokens.traces import (
    Member,
    Trace,
    Traces,
    are_mixed,
    are_of_all_steps,
    name_steps,
    order_of_likelihood,
    reached_sources,
    steps_read,
    trace_of,
)
from unrolled.explanation.tokens.vectors_read import where_read
from unrolled.held_forward.operation_names import name_of

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
        if name not in RECURRENT | STEPS or self.running.now[0] not in self.networks:
            return super().run_operation(func, args, options)
        self.reads.append(self._read_by_step(*args) if name in STEPS else _read(name, args))
        result = func(*args, **options)
        return rebuilt(result, {place: each.detach() for place, each in leaves(result)})

    def _read_by_step(self, call: StepCall, tensors: Sequence[Tensor]) -> Tensor:
        """Put what a step of the user's own reads beside its state side by side; ids that it reads are vectors."""
        given = dict(zip(call.places, tensors, strict=True))
        states = [each for place, each in given.items() if place in call.form.state]
        alone = all(each.dim() == 1 for each in given.values() if each.is_floating_point())
        batch = 1 if alone or not states else len(states[0])
        parts = [torch.zeros(batch, 1, device=tensors[0].device if tensors else "cpu")]
        for place, each in given.items():
            if place in call.form.state or isinstance(each, nn.Parameter) or each.numel() % batch:
                continue
            if each in self.positions:
                each = self.leaf(torch.ones(*each.shape, 1, device=each.device), each, None, -1)
            if each.is_floating_point() and (alone or (each.dim() > 0 and len(each) == batch)):
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
    if isinstance(args[1], Tensor) and args[1].dtype == torch.int64:
        padded: Tensor = torch._VF._pad_packed_sequence(args[0], args[1], False, 0.0, len(args[1]))[0]
        return padded
    inputs, batch_first = args[0], args[-1]
    return inputs.transpose(0, 1) if batch_first else inputs


def trace_calls(
    model: nn.Module,
    lines: Sequence[Line],
    networks: FoundNetworks,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> list[Traces]:
    """Trace the tokens of the arguments to the steps of every line.

    Args:
        model: In evaluation mode.
        lines: Of a held run of it.
        networks: Its recurrent networks; the calls of those that are opened are lines.
        args: The model's positional arguments.
        kwargs: Its keyword arguments.
    """
    tracer = _CallTracer(networks.opened)
    given, named = tracer.open(args), tracer.open(dict(kwargs))
    try:
        with (
            torch.enable_grad(),
            without_autocast(),
            networks_as_operations(model),
            steps_as_operations(model, networks.steps),
            tracer.running.noted(model, networks.methods),
            tracer,
        ):
            model(*given, **named)
    except Exception:  # of any model: one that refuses to be followed has no traces, and is explained all the same
        return [Traces((), tracer.looked_up)] * len(lines)
    if not all(_reads_the_same(strand, tracer.reads) for line in lines for strand in line.levels[0]):
        return [Traces((), tracer.looked_up)] * len(lines)
    with torch.enable_grad():
        read = [_read_by_line(line, tracer.reads) for line in lines]
    return [_traces(line, each, tracer) for line, each in zip(lines, read, strict=True)]


def _reads_the_same(strand: Strand, reads: Sequence[Tensor]) -> bool:
    """Tell whether a strand's call reads as many steps and sequences in the traced run."""
    return strand.call < len(reads) and reads[strand.call].shape[:2] == strand.states.shape[:2]


def _read_by_line(line: Line, reads: Sequence[Tensor]) -> Tensor:
    """Put what the calls of a line's lowest level read one after another, shape (time, batch, input)."""
    parts = []
    for strand in line.levels[0]:
        own, rows = reads[strand.call], strand.rows
        whole = own.new_zeros(len(own), line.inside.shape[1], own.shape[2])
        parts.append(whole.index_copy(1, rows.to(own.device), own))
    return torch.cat(parts)


def _traces(line: Line, read: Tensor, tracer: _CallTracer) -> Traces:
    """Find the tokens of every argument that the steps of one line read."""
    sources = reached_sources(read, tracer.sources)
    looked_up = name_steps(sources, line.inside) or tracer.met_nothing(int(line.inside.sum()))
    grouped: dict[tuple[object, int], list[Member]] = {}
    for source, where in zip(sources, where_read([each.leaf for each in sources], read, line.inside), strict=True):
        if read.requires_grad or where is not None:
            grouped.setdefault(_key(source), []).append((source, where))
    followed = {key: members for key, members in grouped.items() if key[0] is not None}
    # of ids that were not followed, the table is all that is known; two tables may be words and positions
    made = {key: members for key, members in grouped.items() if key[0] is None}
    found = [_trace(line, members, made.get((None, key[1]), [])) for key, members in followed.items()]
    traces = [each for each in found if each is not None and not are_mixed(each, found) and not are_of_all_steps(each)]
    if not followed and len(made) == 1:
        (members,) = made.values()
        own = _trace(line, members, [])
        traces = [own] if own is not None and any(len(set(each)) > 1 for each in own.ids or ()) else []
    traces.sort(key=order_of_likelihood)
    return Traces(tuple(traces), looked_up, mixed=bool(sources) and not traces)


def _key(source: TokenSource) -> tuple[object, int]:
    """Tell the sources that one line reads step by step: those of one argument, by one table."""
    if source.ids is None:
        return ("vectors", source.vectors), -1
    return id(source.argument) if source.argument.numel() else None, source.table


def _trace(line: Line, members: Sequence[Member], made: Sequence[Member]) -> Trace | None:
    """Join the sources of one argument; steps that read none of it read ids that the model made, or no token.

    None if a step reads a mixture of tokens.
    """
    steps, others = steps_read(line.inside, members), steps_read(line.inside, made)
    if steps is None or others is None:
        return None
    whole = tuple(
        tuple(own or other for own, other in zip(each, rest, strict=True))
        for each, rest in zip(steps, others, strict=True)
    )
    for each in whole:
        read = [place for step in each for place in {place for place, _ in step} if place >= 0]
        if any(len(step) > 1 for step in each) and len(read) > len(set(read)):
            return None
    return trace_of(members[0][0], whole)
