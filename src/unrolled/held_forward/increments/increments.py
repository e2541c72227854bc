r"""Increments: one step of any cell as a linear map of what moves, every other factor held.

Along a run of the step each tensor v has an end, the value that it took, a base, and a block of increments Δv, which
is linear in the increments that the run began with. Two rules differ in where a non-linearity's line begins:

- :class:`SecantIncrements`: the base is the value where the state is empty. An activation has Δφ = S Δz with the slope
  S = (φ(z) - φ(z₀)) / (z - z₀), and a product Δ(ab) = ½ (a₀ + a) Δb + ½ (b₀ + b) Δa.
- :class:`ShareIncrements`: lines begin at zero, S = (φ(z) - φ(0)) / z. Of a gate γ times a content c, whose value
  at zero is γ₀ c, the rest (γ - γ₀) c goes to the content by a share p and to the gate by 1 - p.

Source:
    Ours. The product rule is the Shapley value of two players.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.overrides import resolve_name

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.held_operations import HELD_OPERATIONS
from unrolled.held_forward.increments.moving_places import MovingPlaces
from unrolled.held_forward.operations.operands import holds_numbers, of_kind, operands
from unrolled.held_forward.operations.operation_call import OperationCall
from unrolled.held_forward.operations.operation_mode import OperationMode
from unrolled.held_forward.operations.operation_names import name_of, plain_form
from unrolled.held_forward.operations.python_bodies import python_body
from unrolled.held_forward.operations.rules_by_name import registers
from unrolled.held_forward.tensor_facts.gates import CONTENT_SHARE
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes

__all__ = ["IncrementCall", "Increments", "SecantIncrements", "ShareIncrements", "increment_rule", "place_rule"]


@dataclass(frozen=True)
class IncrementCall(OperationCall):
    """One operation of the step, at least one operand of which is a block of increments."""

    mode: Increments

    def moves(self, value: object) -> bool:
        """Tell whether an operand is a block of increments."""
        return isinstance(value, Tensor) and value in self.mode.points

    def at_both(self) -> tuple[Any, Any]:
        """Compute the operation at the base and at the end."""
        return self.run(*self.mode.at(0, self.args)), self.run(*self.mode.at(1, self.args))


T = TypeVar("T")
IncrementRule = Callable[[IncrementCall], Any]
_INCREMENT_RULES: dict[str, IncrementRule] = {}


increment_rule = registers(_INCREMENT_RULES)
"""Register a rule of increments."""
_PLACE_RULES: dict[str, IncrementRule] = {}
place_rule = registers(_PLACE_RULES)
"""Register a rule of an operation that reads places which the state changes."""


class Increments(OperationMode):
    """Runs a step on blocks of increments, (columns, …), while the factors of one point are held."""

    def __init__(self) -> None:
        super().__init__()
        self.is_differentiated = torch.is_grad_enabled()
        """Whether autograd follows the increments, also where the step says ``torch.no_grad``."""
        self.points: TensorNotes[tuple[Tensor, Tensor]] = TensorNotes()
        self.gates: TensorNotes[bool | Tensor] = TensorNotes()
        """Which entries are gates, as in :mod:`~unrolled.held_forward.tensor_facts.gates`: True for all, or a mask."""
        self.numbers: TensorNotes[bool] = TensorNotes()
        """Tensors that the step makes of numbers alone, as ``torch.ones_like``, and results that are held."""
        self.integers: TensorNotes[bool] = TensorNotes()
        """Numbers that the step makes integers."""
        self.places: TensorNotes[MovingPlaces] = TensorNotes()
        """Which entries places name that the state changes."""
        self.divisors: TensorNotes[Tensor] = TensorNotes()
        """Of what reciprocals are the inverse."""
        self.logarithms: TensorNotes[Any] = TensorNotes()
        """Of which gates tensors are the logarithm, or the logarithm and what is added to it."""

    def follow(self, block: Tensor, base: Tensor, end: Tensor) -> Tensor:
        """Let a tensor stand for a block of increments around a point; base and end have the block's leading axes."""
        base, end = (each.detach() if each.requires_grad else each for each in (base, end))
        self.points[block] = (base, end)
        return block

    def keep(self, block: Any, base: Any, end: Any) -> Any:
        """Follow the results of an operation: one tensor or several."""
        if isinstance(block, tuple | list):
            return of_kind(block, (self.keep(*each) for each in zip(block, base, end, strict=True)))
        return self.follow(block, base, end)

    def keep_gate(self, results: Any, entries: Any, arrange: Callable[..., Any]) -> Any:
        """Let results be gates where their entries are those of a gate or numbers.

        ``arrange`` makes the results' entries of the entries of the operands.
        """
        given = operands(entries)
        if not any(each in self.gates for each in given):
            return results
        if all(self.gates.get(each, each in self.numbers or not each.is_floating_point()) is True for each in given):
            for each in operands([results]):
                self.gates[each] = True
            return results
        for each, gates in zip(operands([results]), operands([arrange(*self._are_gates(entries))]), strict=True):
            self.gates[each] = bool(gates.all()) or gates != 0
        return results

    def _are_gates(self, value: Any) -> Any:
        """Replace operands by ones where they are gates or numbers, and by zeros elsewhere."""
        if isinstance(value, tuple | list):
            return of_kind(value, map(self._are_gates, value))
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return 1.0 if isinstance(value, float) else value
        gates = self.gates.get(value, value in self.numbers)
        end = self.point(value)[1]
        return gates.to(end) if isinstance(gates, Tensor) else torch.full_like(end, float(gates))

    def is_number(self, value: Any) -> bool:
        """Tell whether an operand is a number of the code or a held result, no parameter."""
        return not isinstance(value, Tensor) or value in self.numbers

    @abstractmethod
    def holds(self, name: str, args: Sequence[Any] = ()) -> bool:
        """Tell whether the result of an operation does not move."""

    @abstractmethod
    def line_start(self, base: Tensor, end: Tensor) -> Tensor:
        """Return where the line of an activation begins whose operand has this base and end."""

    @abstractmethod
    def held_factor(self, factor: Tensor, other: Tensor, by_entry: bool) -> Tensor:
        """Return ``factor``, which moves, as it multiplies the increments of ``other``, entry by entry or summed."""

    @abstractmethod
    def on_line(self, factor: Tensor, place: float) -> Tensor:
        """Return a factor, which moves, at a place of its line, from 0 to 1."""

    @abstractmethod
    def is_gate(self, factor: Tensor) -> bool:
        """Tell whether a factor shares a product as a gate does."""

    @abstractmethod
    def base_of_constant(self, value: Any) -> Any:
        """Return the base of a summand that does not move."""

    def point(self, value: Any) -> tuple[Any, Any]:
        """Return the base and the end of an operand; what does not move is its own base."""
        return self.points.get(value, (value, value)) if isinstance(value, Tensor) else (value, value)

    def at(self, place: int, value: Any) -> Any:
        """Return the same arguments at the base (0) or the end (1)."""
        if isinstance(value, Tensor):
            return value if (point := self.points.get(value)) is None else point[place]
        if isinstance(value, tuple | list):
            return of_kind(value, [self.at(place, each) for each in value])
        return value

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Apply the rule of one operation."""
        operation, given = name_of(func), [*operands(args), *operands(options.values())]
        if not any(each in self.points for each in given):
            if any(map(is_functorch_wrapped_tensor, given)):  # which stands for a tensor that may move
                raise UnsupportedOperationError("the step uses torch.func, where increments are lost")
            with torch.no_grad():  # autograd is to follow increments only
                result = func(*args, **options)
            return self.of_numbers(result) if all(map(self.is_number, given)) else result
        if self.is_differentiated and not torch.is_grad_enabled():
            with torch.inference_mode(False), torch.enable_grad():
                return self.run_operation(func, args, options)
        name = operation.name
        if options.get("out") is not None:
            raise UnsupportedOperationError(f"the step writes the result of {name} by out=; leave out= away")
        if name.startswith("get "):
            return getattr(self.point(args[0])[1], name[4:])
        changed = args[0] if options.pop("inplace", False) or operation.writes else None
        function = plain_form(func, operation)
        if operation.reflected:
            args = (args[1], args[0], *args[2:])
        if self.holds(name, args):
            result = self.of_numbers(function(*self.at(1, args), **options))
        elif places := [each for each in given if each in self.points and not holds_numbers(each)]:
            if name not in _PLACE_RULES or any(each not in self.places for each in places):
                raise UnsupportedOperationError(f"the state changes the numbers of entries that {name} reads")
            result = _PLACE_RULES[name](IncrementCall(function, operation, args, options, self))
        elif name in _INCREMENT_RULES:
            result = _INCREMENT_RULES[name](IncrementCall(function, operation, args, options, self))
        elif (body := python_body(func)) is not None:
            with self:
                return body(*args, **options)
        else:
            raise UnsupportedOperationError(f"the operation {resolve_name(func) or name} has no rule for increments")
        return result if changed is None or result is changed else self._written(changed, result, name)

    def _written(self, changed: Tensor, result: Tensor, name: str) -> Tensor:
        """Let a tensor that an operation changes stand for its result."""
        base, end = self.point(result)
        if changed._is_view() or self.point(changed)[1]._is_view():  # another tensor would change as well
            raise UnsupportedOperationError(f"the step changes a tensor in place ({name}); compute a new one instead")
        notes: tuple[TensorNotes[Any], ...] = (self.gates, self.divisors, self.logarithms, self.numbers)
        for known in notes:
            known.pop(changed, None)
            if result in known:
                known[changed] = known[result]
        if result in self.points:
            return self.follow(changed.copy_(result), base, end)
        self.points.pop(changed, None)
        return changed.detach_().copy_(result)

    def of_numbers(self, result: T) -> T:
        """Remember tensors that are made of numbers, or are held."""
        for each in operands([result]):
            self.numbers[each] = True
        return result


class SecantIncrements(Increments):
    """Lines begin where the state is empty."""

    def holds(self, name: str, args: Sequence[Any] = ()) -> bool:
        """Return False: all that the state moves moves."""
        return False

    def line_start(self, base: Tensor, end: Tensor) -> Tensor:
        """Return the operand's base."""
        return base

    def held_factor(self, factor: Tensor, other: Tensor, by_entry: bool) -> Tensor:
        """Return the mean of the factor's value with and without the state."""
        base, end = self.point(factor)
        return base + 0.5 * (end - base)

    def on_line(self, factor: Tensor, place: float) -> Tensor:
        """Return a place between the factor without and with the state."""
        return torch.lerp(*self.point(factor), place)

    def is_gate(self, factor: Tensor) -> bool:
        """Return False: all factors share alike."""
        return False

    def base_of_constant(self, value: Any) -> Any:
        """Return the constant: it is there without the state as well."""
        return value


class ShareIncrements(Increments):
    """Lines begin at zero; of a gated product the share p is the content's."""

    def __init__(self, share: float = CONTENT_SHARE) -> None:
        super().__init__()
        self.share = share

    def holds(self, name: str, args: Sequence[Any] = ()) -> bool:
        """Tell whether an account holds the result."""
        if name == "pow":
            return args[1] in self.points or not _rises(args[1])
        if name == "exp" and args:
            return args[0] not in self.logarithms
        return name in HELD_OPERATIONS

    def line_start(self, base: Tensor, end: Tensor) -> Tensor:
        """Return zero."""
        return torch.zeros_like(end)

    def held_factor(self, factor: Tensor, other: Tensor, by_entry: bool) -> Tensor:
        """Return γ₀ + p (γ - γ₀) for a gate, 1 - p of a content beside a gate, one half of it beside a content."""
        base, end = self.point(factor)
        gate, beside = self._gate_entries(factor, by_entry), self._gate_entries(other, by_entry)
        if isinstance(gate, bool) and isinstance(beside, bool):
            part = 0.5 if gate == beside else self.share if gate else 1 - self.share
            # only a gate keeps what it is at zero; the constants of a content have a part of their own
            return base + part * (end - base) if gate else part * end
        gate, beside = (torch.as_tensor(each, device=end.device) for each in (gate, beside))
        parts = torch.where(gate == beside, 0.5, torch.where(gate, self.share, 1 - self.share)).to(end)
        return torch.where(gate, base + parts * (end - base), parts * end)

    def _gate_entries(self, value: Tensor, by_entry: bool) -> bool | Tensor:
        """Tell which entries of an operand are gates; what is nothing at zero is a content."""
        gates, base = self.gates.get(value, False), self.point(value)[0]
        count = int(base.count_nonzero()) if by_entry or gates is True else 0
        if gates is False or count == 0:
            return False
        if gates is True and (count == base.numel() or not by_entry):
            return True
        return (base != 0) & gates

    def on_line(self, factor: Tensor, place: float) -> Tensor:
        """Return a place between what a gate is at zero, or zero, and the factor."""
        base, end = self.point(factor)
        return torch.lerp(base if self.is_gate(factor) else torch.zeros_like(end), end, place)

    def is_gate(self, factor: Tensor) -> bool:
        """Tell whether all entries of a factor are gates."""
        return self._gate_entries(factor, False) is True

    def base_of_constant(self, value: Any) -> Any:
        """Return a number itself, since it belongs to a gate's value at zero (1 - z); a bias moves from zero."""
        return value if self.is_number(value) else 0.0


def _rises(exponent: Any) -> bool:
    """Whether powers with this exponent, or with each of these, begin at zero."""
    if isinstance(exponent, Tensor):
        return not exponent.is_complex() and bool((exponent > 0).all())
    return not isinstance(exponent, complex) and exponent > 0
