"""Gradients through rectified units that are off: these read their operand, though the slope there is zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.autograd.graph import Node

from unrolled.held_forward.operations.operands import operands
from unrolled.held_forward.operations.operation_call import OperationCall
from unrolled.held_forward.tensor_facts.moves import CONVERSIONS
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes

__all__ = ["WrittenRectifiers", "open_rectifiers"]

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


_OF_RESULT = frozenset("relu relu6 threshold hardtanh hardsigmoid hardswish clamp clamp_min clamp_max".split())
"""Operations that may rectify a view in place, of which the graph keeps no name."""
_COMPARE = frozenset("gt ge lt le".split())
_SAME_ANSWER = CONVERSIONS | {"logical_not", "bitwise_not", "invert"}
_CHOOSE = frozenset("where masked_fill mul setitem index_put".split())
_MARK = "unrolled rectifier"


class WrittenRectifiers:
    """Marks units that a model rectifies by a choice, as torch.where(y > 0, y, 0), and those of a view."""

    def __init__(self) -> None:
        self._compared: TensorNotes[list[Tensor]] = TensorNotes()

    def note(self, call: OperationCall, result: object) -> None:
        """Mark the node of an operation's result, if it is a rectified unit whose name does not tell."""
        tensors = operands((*call.args, *call.kwargs.values()))
        if call.name == "setitem":
            result = call.args[0]
        if not isinstance(result, Tensor):
            return
        if call.name in _COMPARE:
            self._compared[result] = [each for each in tensors if each.requires_grad]
        elif call.name in _SAME_ANSWER and tensors and tensors[0] in self._compared:
            self._compared[result] = self._compared[tensors[0]]
        elif call.name in _CHOOSE:
            compared = [each for answer in tensors for each in self._compared.get(answer, [])]
            if any(each is other for each in compared for other in tensors):
                _mark(result)
            elif compared and all(each in self._compared for each in tensors):  # as numbers, and by no other mask
                self._compared[result] = compared
        elif call.name in _OF_RESULT and result._base is not None:
            _mark(result)


def _mark(result: Tensor) -> None:
    """Mark the node that made a result; of a view that was changed in place, that of what it is a view of."""
    base = result._base
    node = result.grad_fn if base is None or base.grad_fn is None else base.grad_fn
    if node is not None and (base is None or node.name().endswith("CopySlices")):
        _marks(node)[_MARK] = True


def _marks(node: Node) -> dict[str, Any]:
    """Return the dictionary that a node keeps for notes; torch's stubs call it a function."""
    marks: Any = node.metadata
    return marks


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
        if node.name() in _RECTIFIERS or _MARK in _marks(node):
            found.append(node)
        open_nodes += [each for each, _ in node.next_functions]
    return found


def _pass_on(below: Sequence[Tensor | None], above: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    """Return the gradient of a unit's result as that of its operand, if it has one operand of that shape."""
    alike = [each is not None and above[0] is not None and each.shape == above[0].shape for each in below]
    if sum(each is not None for each in below) != 1 or not any(alike):
        return tuple(below)
    return tuple(above[0] if same else None for same in alike)
