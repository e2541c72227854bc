"""Which token reads each entry that ids pick from a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unrolled.held_forward.operations.operation_call import OperationCall

if TYPE_CHECKING:
    from unrolled.held_forward.token_ids.token_positions import TokenPositions

__all__ = ["along_axis", "axis_of_one_token", "index_of_read", "positions_read"]


def index_of_read(call: OperationCall) -> Any:
    """Return what picks the entries of a table; None for any other operation."""
    name, args, options = call.name, call.args, call.kwargs
    if name == "getitem":
        return args[1]
    if name in ("index_select", "gather"):
        return args[2] if len(args) > 2 else options.get("index")
    if name in ("take", "take_along_dim"):
        return args[1] if len(args) > 1 else options.get("index", options.get("indices"))
    return None


def positions_read(positions: TokenPositions, call: OperationCall, result: Any) -> Tensor | None:
    """Return the positions of the entries that ids pick from a table, in the shape of the result."""
    index, name, args = index_of_read(call), call.name, call.args
    if index is None or not isinstance(args[0], Tensor) or not isinstance(result, Tensor):
        return None
    if name == "getitem":
        return _by_index(positions, index, result.shape)
    places = positions.get(index)
    if places is None:
        return None
    if name != "index_select":
        return places.expand(result.shape)
    dim = args[1] if len(args) > 1 else call.kwargs["dim"]
    return places.view(-1, *[1] * (result.dim() - 1 - dim % result.dim())).expand(result.shape)


def axis_of_one_token(positions: Tensor) -> int | None:
    """Return the last axis along which all entries belong to one token, as those of a vector do; None for none."""
    axes = (axis for axis in reversed(range(positions.dim())) if positions.shape[axis] > 1)
    return next((axis for axis in axes if bool((positions == positions.narrow(axis, 0, 1)).all())), None)


def along_axis(values: Tensor, axis: int | None) -> Tensor:
    """Put an axis of vectors last; without one each entry is a vector by itself."""
    return values[..., None] if axis is None else values.movedim(axis, -1)


def _by_index(positions: TokenPositions, index: Any, shape: torch.Size) -> Tensor | None:
    """Return the positions of ``table[index]``, of whose parts those that are tensors stand side by side."""
    parts = index if isinstance(index, tuple) else (index,)
    tensors = [place for place, each in enumerate(parts) if isinstance(each, Tensor)]
    if not tensors or any(parts[place].dtype in (torch.bool, torch.uint8) for place in tensors):
        return None
    before, between = parts[: tensors[0]], parts[tensors[0] : tensors[-1] + 1]
    whole = all(isinstance(each, Tensor | int) for each in between)
    if not whole or any(not isinstance(each, int | slice) and each is not None for each in before):
        return None
    lead = sum(not isinstance(each, int) for each in before)
    wide = torch.broadcast_shapes(*(parts[place].shape for place in tensors))
    found = positions.of_entries([parts[place] for place in tensors], wide)
    if found is None:
        return None
    return found.reshape((*wide, *[1] * (len(shape) - lead - len(wide)))).expand(shape)
