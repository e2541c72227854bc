"""Operations that write their result into a tensor that the call gives: ``torch.mm(a, b, out=z)``, ``h.unsqueeze_(0)``.

Autograd refuses ``out=`` where value is among the operands. So the operation is met without it, and its result is
copied. A re-arrangement in place changes the shape of a tensor, which no copy does: autograd does it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.operations.operands import carries, holds_numbers
from unrolled.held_forward.operations.operation_names import Operation, name_of, plain_form
from unrolled.held_forward.outside.shared_memory import SharedMemory
from unrolled.held_forward.tensor_facts.gates import Gates
from unrolled.held_forward.tensor_facts.logarithms import BEGIN, FollowsLogarithms
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.held_forward.token_ids.token_positions import TokenPositions

__all__ = ["WritesInPlace", "parts_refused"]

_RE_ARRANGED = frozenset({"unsqueeze", "squeeze", "t", "transpose", "as_strided"})
"""Operations in place that change the shape of their operand and none of its entries."""


class WritesInPlace(FollowsLogarithms):
    """A mode that meets the plain form of an operation, and lets the tensor that the call gives be its result."""

    rows: Rows
    positions: TokenPositions
    gates: Gates
    memory: SharedMemory

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Meet one operation, and write its result where the call says."""
        operation = name_of(func)
        given = options.pop("out", None)
        if given is not None:
            result = super().run_operation(func, args, options)
            return self._write(given, result, operation)
        if operation.in_place and operation.name in _RE_ARRANGED and self._is_followed(args[0]):
            result = super().run_operation(plain_form(func, operation), args, options)
            logarithm, gate = self.logarithms.of(result), self.gates.of(result)
            with torch.enable_grad(), parts_refused(operation.name):
                func(*args, **options)
            if gate is not None:
                self.gates.keep(args[0], gate)
            return args[0] if logarithm is None else self.logarithms.keep(args[0], logarithm)
        if operation.in_place and operation.name in BEGIN and carries(args[0]):
            result = super().run_operation(plain_form(func, operation), (self.gates.copy(args[0]), *args[1:]), options)
            self._become(args[0], result)
            logarithm = self.logarithms.of(result)
            return args[0] if logarithm is None else self.logarithms.keep(args[0], logarithm)
        if operation.writes:
            self._open_around(args[0], args[1:])
        return super().run_operation(func, args, options)

    def _is_followed(self, tensor: Tensor) -> bool:
        return tensor.requires_grad or self.logarithms.of(tensor) is not None

    def _open_around(self, part: Tensor, operands: Sequence[Any]) -> None:
        """Make a row of the constant that value is written into a part of: the whole of it carries value then."""
        whole = part._base
        if whole is None or whole.requires_grad or not holds_numbers(whole):
            return
        if any(isinstance(each, Tensor) and each.requires_grad for each in operands):
            whole.copy_(self.rows.constant(whole))

    def _become(self, changed: Tensor, result: Tensor) -> None:
        """Let a tensor that an operation changes be its result. What is held over all of it carries no value."""
        if carries(result):
            self.gates.write(changed, result)
        elif changed._is_view() and carries(changed):
            self.gates.write(changed, self.rows.constant(result))
        else:
            if carries(changed):
                self.memory.forget(changed.detach_())
            changed.copy_(result)
            self.rows.mark(changed, *self.rows.origin(result))

    def _write(self, given: Any, result: Any, operation: Operation) -> Any:
        """Copy a result, or each of several, to the tensor that was given for it."""
        if not isinstance(given, Tensor):
            for one, each in zip(given, result, strict=True):
                self._write(one, each, operation)
            return result
        if given.shape != result.shape:
            if given.requires_grad:
                raise UnsupportedOperationError(
                    f"the model writes the result of {operation.name}, of shape {tuple(result.shape)}, by out= over a "
                    f"tensor of shape {tuple(given.shape)} that carries value; leave out= away"
                )
            given.resize_(result.shape)
        self._open_around(given, (result,))
        if carries(given) and not carries(result):
            self._become(given, result)
            return given
        with self:
            written = given.copy_(result)
        if (positions := self.positions.get(result)) is not None:
            self.positions[given] = positions
        elif not result.requires_grad:
            self.rows.inherit(given, [result])
        return written


@contextmanager
def parts_refused(operation: str) -> Iterator[None]:
    """Refuse by the operation's name what autograd refuses: to change in place what chunk, split or unbind gave."""
    try:
        yield
    except RuntimeError as error:
        if "multiple views" not in str(error):
            raise
        name, plain = f"{operation}_", f"{operation} without the underscore"
        if operation == "setitem":
            name, plain = operation, "torch.cat or torch.where"
        raise UnsupportedOperationError(
            f"the model changes a part of a tensor in place ({name}) that chunk, split or unbind gave, which autograd "
            f"refuses; use slices there, or {plain}"
        ) from error
