"""Where value begins: embeddings of the model's own arguments."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.held_forward.mode import HeldCall, rule
from unrolled.held_forward.operations.operands import carries

__all__: list[str] = []


@rule("embedding")
def embedding(call: HeldCall) -> Tensor:
    """Look up vectors: those of the arguments' tokens are rows, those of anything else belong to the table."""
    weight, indices = call.args[:2]
    if carries(weight):  # states that are picked as a table's rows are
        with call.mode:
            return weight[indices]
    value = call.held()
    padding = call.args[2] if len(call.args) > 2 else None
    opened = call.mode.vectors.looked_up(weight, indices, value, padding)
    if opened is None:
        origin = call.rows.origin(indices)  # ids that were chosen by an arg max are held
        call.rows.mark(value, *(origin if origin.kind == "held" else call.rows.origin(weight)))
        return value
    return opened


@rule("embedding_bag")
def embedding_bag(call: HeldCall) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sum, mean or maximum of the vectors of each bag."""
    weight, indices, offsets, _, mode, _, scales, include_last, padding = (*call.args, *[None] * 9)[:9]
    with call.mode:
        vectors = torch.nn.functional.embedding(indices, weight, padding if padding is None or padding >= 0 else None)
    starts = offsets[:-1] if include_last else offsets
    place = torch.arange(len(indices), device=indices.device)
    bag = torch.searchsorted(starts, place, right=True) - 1
    counted = torch.ones_like(place, dtype=vectors.dtype)
    if padding is not None and padding >= 0:
        counted = (indices != padding).to(vectors.dtype)
    size = vectors.new_zeros(len(starts)).index_add(0, bag, counted)
    if mode == 2:  # max: which entry is largest is held
        held = vectors.detach().masked_fill(counted[:, None] == 0, -torch.inf)
        best = held.new_full((len(starts), vectors.shape[1]), -torch.inf)
        best = best.scatter_reduce(0, bag[:, None].expand_as(held), held, "amax")
        chosen = (held == best[bag]).to(vectors.dtype)
        weights = chosen / vectors.new_zeros(best.shape).index_add(0, bag, chosen)[bag].clamp_min(1)
    else:
        weights = (counted / size.clamp_min(1)[bag] if mode == 1 else counted)[:, None]
    nothing = vectors.detach().new_zeros(len(starts), vectors.shape[1])
    with call.mode:
        vectors = vectors * weights if scales is None else vectors * weights * scales[:, None]
        result = nothing.index_add(0, bag, vectors)
    return result, bag, size, size
