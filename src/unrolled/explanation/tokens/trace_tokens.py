"""Which token of which argument a recurrent network that is called once reads at each position.

The model runs once more, up to its recurrent network; :mod:`unrolled.explanation.tokens.find_traces` does the rest.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from unrolled.cells.batch_layout import read_batch
from unrolled.decomposition.opening.network_cells import Network
from unrolled.explanation.tokens.find_traces import FoundTraces
from unrolled.explanation.tokens.network_reached import NetworkReached, reach
from unrolled.explanation.tokens.sequences_apart import traces_apart
from unrolled.explanation.tokens.tracer import Tracer
from unrolled.explanation.tokens.traces import Traces
from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = ["trace_tokens"]


def trace_tokens(model: nn.Module, rnn: Network, args: tuple[object, ...], kwargs: dict[str, object]) -> Traces:
    """Trace the tokens of the arguments to the positions of a recurrent network."""
    tracer = Tracer()
    tracer.begin_run(model)
    given, named = tracer.open_call(args, kwargs)
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
    of_run = FoundTraces(tracer, read, layout.inside)
    found = of_run.of_ids_of_several() or traces_apart(of_run.of_arguments(), tracer, read, layout.inside)
    return replace(found, found=tuple(each for each in found.found if not each.joins_others))
