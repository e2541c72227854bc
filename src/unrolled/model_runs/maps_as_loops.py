"""Run a model whose ``torch.vmap`` is a loop over the mapped axis.

Inside a map the operations see tensors without that axis, and no mode sees what the tensors are made of. A loop gives
the same result, operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._functorch import apis
from torch._functorch.vmap import _process_batched_inputs
from torch.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

from unrolled.held_forward.outside.handed_over import met_here
from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = ["maps_as_loops"]

_MAP = "vmap_impl"
"""What a mapped function looks up in torch's module."""


@contextmanager
def maps_as_loops() -> Iterator[None]:
    """Let ``torch.vmap`` loop where a mode meets operations, until the end of the block.

    A thread without a mode maps as before.
    """
    before = getattr(apis, _MAP)

    def mapped(
        function: Callable[..., Any],
        in_dims: Any,
        out_dims: Any,
        randomness: str,
        chunk_size: int | None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if not met_here() or randomness != "error":  # a loop would draw other numbers
            return before(function, in_dims, out_dims, randomness, chunk_size, *args, **kwargs)
        return _loop(function, in_dims, out_dims, args, kwargs)

    with replaced_attributes([(apis, _MAP, mapped)]):
        yield


def _loop(
    function: Callable[..., Any], in_dims: Any, out_dims: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a function for each index of the mapped axes, and stack the results along others."""
    count, axes, given, form = _process_batched_inputs(in_dims, args, function)
    # an axis without entries, as at the end of torch's associative scan: the form of the results is that of zeros
    mapped = [
        each if axis is None or count else _one_of_zeros(each, axis) for each, axis in zip(given, axes, strict=True)
    ]
    results = []
    for place in range(max(count, 1)):
        own = [each if axis is None else each.select(axis, place) for each, axis in zip(mapped, axes, strict=True)]
        results.append(tree_flatten(function(*tree_unflatten(own, form), **kwargs)))
    parts, (form, *_) = zip(*(found for found, _ in results), strict=True), [form for _, form in results]
    if form.is_leaf() and isinstance(out_dims, tuple):
        (out_dims,) = out_dims
    ends = _broadcast_to_and_flatten(out_dims, form)
    assert ends is not None  # the plain run has refused any other
    stacked = [
        each[0] if axis is None else torch.stack(each, axis).narrow(axis, 0, count)
        for each, axis in zip(parts, ends, strict=True)
    ]
    return tree_unflatten(stacked, form)


def _one_of_zeros(empty: Tensor, axis: int) -> Tensor:
    """Return a tensor of zeros with one entry along an axis that has none."""
    shape = list(empty.shape)
    shape[axis] = 1
    return empty.new_zeros(shape)
