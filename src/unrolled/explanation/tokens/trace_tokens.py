"""Which token of which argument a recurrent network reads at each position.

The model runs once more, up to its recurrent network. Ids are followed through the operations that move them, until
they are looked up; from there the gradient tells at which position a vector is read. Weighed by the numbers of the
positions, it is that number times the plain gradient. A vector that several positions read has no such number: what
mixes tokens has no order of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unrolled.cells.batch_layout import read_batch
from unrolled.decomposition.network_cells import Network
from unrolled.explanation.tokens.network_reached import NetworkReached, reach
from unrolled.explanation.tokens.tracer import Tracer
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
from unrolled.held_forward.replaced_attributes import replaced_attributes

__all__ = ["trace_tokens"]


def trace_tokens(model: nn.Module, rnn: Network, args: tuple[object, ...], kwargs: dict[str, object]) -> Traces:
    """Trace the tokens of the arguments to the positions of a recurrent network."""
    tracer = Tracer()
    given, named = tracer.open(args), tracer.open(kwargs)
    try:
        with replaced_attributes([(rnn, "forward", reach)]), torch.enable_grad(), tracer:
            model(*given, **named)
    except NetworkReached as reached:
        inputs, lengths = reached.inputs, reached.lengths
    except Exception:  # a model that refuses to be followed has no traces, and is explained all the same
        return Traces((), tracer.looked_up)
    else:
        return Traces((), False)
    with torch.enable_grad():
        read, layout = read_batch(inputs, rnn.input_size, rnn.batch_first, lengths)
    # of one source, where_read says as well whether it is read: that saves a gradient
    sources = tracer.sources if len(tracer.sources) == 1 else reached_sources(read, tracer.sources)
    looked_up = tracer.lost or name_steps([each for each in sources if each.is_followed], layout.inside)
    looked_up = looked_up or tracer.met_nothing(int(layout.inside.sum()))
    members = list(zip(sources, where_read([each.leaf for each in sources], read, layout.inside), strict=True))
    found = [_trace(place, members, layout.inside) for place, each in enumerate(sources) if each.is_followed]
    known = [trace for trace in found if trace is not None]
    if known and all(trace is None or are_of_all_steps(trace) for trace in found):  # nothing names a step
        return Traces((), len(known) < len(found))
    traces = [trace for trace in known if not are_mixed(trace, found) and not are_of_all_steps(trace)]
    traces.sort(key=order_of_likelihood)
    return Traces(tuple(traces), looked_up)


def _trace(number: int, members: Sequence[Member], inside: Tensor) -> Trace | None:
    """Turn the positions of vectors into the vectors of positions; None if a position has none.

    A position may read an id of the model's own by the same table, or vectors that are none of ids.
    """
    source, _ = members[number]
    steps = steps_read(inside, [members[number]])
    if steps is None or all(step for each in steps for step in each):
        return None if steps is None else trace_of(source, steps)
    others = [(each, where) for k, (each, where) in enumerate(members) if k != number and each.ids is not None]
    own = steps_read(inside, [(each, w) for each, w in others if not each.is_followed and each.table == source.table])
    rest = steps_read(inside, [(each, w) for each, w in others if each.is_followed or each.table != source.table])
    if source.ids is None or own is None or rest is None:
        return None
    whole = tuple(tuple(a or b for a, b in zip(*each, strict=True)) for each in zip(steps, own, strict=True))
    beside = (a or not b for each in zip(whole, rest, strict=True) for a, b in zip(*each, strict=True))
    return trace_of(source, whole) if all(beside) else None
