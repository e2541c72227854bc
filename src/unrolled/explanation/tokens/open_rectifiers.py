"""Gradients through rectified units that are off: these read their operand, though the slope there is zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor
from torch.autograd.graph import Node

__all__ = ["open_rectifiers"]

_RECTIFIERS = frozenset(
    f"{name}Backward{overload}"
    for name, overload in (
        *(("Relu", 0), ("Threshold", 0), ("Hardtanh", 0), ("Hardsigmoid", 0), ("Clamp", 1), ("ClampMin", 0)),
        *(("ClampMax", 0), ("Softshrink", 0), ("Hardshrink", 0), ("Hardswish", 0), ("Maximum", 0), ("Minimum", 0)),
        *(("Fmax", 0), ("Fmin", 0), ("Clamp", 0), ("ClampMin", 1), ("ClampMax", 1)),  # clamps by tensors
    )
)
"""Nodes of torch's graph that differentiate a function of one tensor whose slope is zero on an interval.

A maximum, a minimum or a clamp by tensors is one where the other tensors are constants.
"""


@contextmanager
def open_rectifiers(result: Tensor) -> Iterator[bool]:
    """Give every rectified unit in the graph of a result the slope 1; it yields whether there is one."""
    handles = [node.register_hook(_pass_on) for node in _rectifiers(result)]
    try:
        yield bool(handles)
    finally:
        for handle in handles:
            handle.remove()


def _rectifiers(result: Tensor) -> list[Node]:
    found, met, open_nodes = [], set[Node](), [result.grad_fn]
    while open_nodes:
        node = open_nodes.pop()
        if node is None or node in met:
            continue
        met.add(node)
        if node.name() in _RECTIFIERS:
            found.append(node)
        open_nodes += [each for each, _ in node.next_functions]
    return found


def _pass_on(below: Sequence[Tensor | None], above: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    """Return the gradient of a unit's result as that of its operand, if it has one operand of that shape."""
    alike = [each is not None and above[0] is not None and each.shape == above[0].shape for each in below]
    if sum(each is not None for each in below) != 1 or not any(alike):
        return tuple(below)
    return tuple(above[0] if same else None for same in alike)
