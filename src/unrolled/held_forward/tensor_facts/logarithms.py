r"""Logarithms of value: tensors u that a model computes with instead of the value :math:`z ∝ e^u`.

A logarithm is an ordinary held number to every operation without a rule here. Beside it the mode keeps z: linear in
the rows, and equal to :math:`e^u` up to a held factor, so that adding held numbers to u changes nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.operations.operation_call import OperationCall
from unrolled.held_forward.operations.operation_mode import OperationMode
from unrolled.held_forward.operations.operation_names import name_of, plain_form
from unrolled.held_forward.operations.rules_by_name import registers
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes

__all__ = ["BEGIN", "Decays", "FollowsLogarithms", "Logarithm", "LogarithmCall", "Logarithms", "beside", "of_nothing"]


@dataclass(frozen=True)
class Decays:
    """The gates a_t whose logarithms a cumulative sum adds up along an axis."""

    risen: Tensor
    """What they are more than ``at_zero``; it carries value."""
    at_zero: Tensor
    """What they are at zero, held."""
    logs: Tensor
    """log a_t, held."""
    dim: int


@dataclass(frozen=True)
class Logarithm:
    """What a tensor u is the logarithm of."""

    value: Tensor | None
    """z; None for a factor that is held altogether."""
    sign: int = 1
    """1, or -1 for a negative logarithm: z is in proportion to exp(sign · u)."""
    decays: Decays | None = None
    """Of a cumulative sum, its gates; of a value that was divided by their product, the gates as well."""


class Logarithms:
    """The logarithms of a run. A tensor that was changed in place since is none any more."""

    def __init__(self) -> None:
        self._kept: TensorNotes[tuple[Logarithm, Any]] = TensorNotes()
        self._met = False

    def __bool__(self) -> bool:
        """Whether the run has met a logarithm."""
        return self._met

    def keep(self, tensor: Tensor, logarithm: Logarithm) -> Tensor:
        """Remember what a tensor is the logarithm of, and give it back."""
        self._kept[tensor], self._met = (logarithm, _versions(tensor, logarithm)), True
        return tensor

    def of(self, tensor: object) -> Logarithm | None:
        """Return what a tensor is the logarithm of; None if it is none."""
        if not isinstance(tensor, Tensor) or tensor not in self._kept:
            return None
        logarithm, versions = self._kept[tensor]
        return logarithm if versions == _versions(tensor, logarithm) else None


@dataclass(frozen=True)
class LogarithmCall(OperationCall):
    """One operation, as a rule of logarithms meets it."""

    mode: Any
    """The :class:`~unrolled.held_forward.mode.HeldForward` of the run."""
    plain: Callable[[], Any]
    """Computes what the operation is to held numbers."""

    def of(self, tensor: object) -> Logarithm | None:
        """Return what a tensor is the logarithm of; None if it is none."""
        found: Logarithm | None = self.mode.logarithms.of(tensor)
        return found

    def exact(self, z: Tensor, value: Tensor) -> Tensor:
        """Give z with this held value: a gate that is nearly closed is the rounding of two parts that cancel."""
        rounding, gate = value - z.detach(), self.mode.gates.of(z)
        result = z + rounding
        if gate is not None:
            self.mode.gates.keep(result, replace(gate, risen=gate.risen + rounding))
        return result


Beside = Callable[[LogarithmCall], Any]
_BESIDE: dict[str, Beside] = {}
"""What operations make of logarithms, by their names."""
BEGIN = frozenset({"log", "softplus", "log_sigmoid"})
"""Operations that make a logarithm of what is none."""


beside = registers(_BESIDE)
"""Register what operations make of logarithms."""


class FollowsLogarithms(OperationMode):
    """A mode that follows logarithms of value beside its own rules."""

    def __init__(self) -> None:
        super().__init__()
        self.logarithms = Logarithms()
        """What the run's tensors are logarithms of."""

    @abstractmethod
    def meet(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Meet one operation by its own rule."""

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Meet one operation, and follow the logarithms among its operands."""
        operation = name_of(func)
        rule = _BESIDE.get(operation.name) if self.logarithms or operation.name in BEGIN else None
        if rule is None:
            return self.meet(func, args, options)
        if operation.in_place:
            changed = args[0]
            if self.logarithms.of(changed) is None:
                return self.meet(func, args, options)
            result = self.run_operation(plain_form(func, operation), args, options)
            found = self.logarithms.of(result)
            changed.copy_(result)
            return changed if found is None else self.logarithms.keep(changed, found)
        ordered = (args[1], args[0], *args[2:]) if operation.reflected else args
        function, plain = plain_form(func, operation), partial(self.meet, func, args, options)
        return rule(LogarithmCall(function, operation, ordered, options, self, plain))


def of_nothing(u: Tensor) -> Tensor:
    """Tell where a tensor is the logarithm of zero; that of a negative number is complex."""
    return torch.isneginf(u.real if u.is_complex() else u)


def _versions(tensor: Tensor, logarithm: Logarithm) -> tuple[int, ...]:
    """How often the tensors were changed in place."""
    both = (tensor, logarithm.value)
    return tuple(each._version for each in both if each is not None and not each.is_inference())
