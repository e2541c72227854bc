r"""Gates of a held run: :math:`γ = γ_0 + (γ - γ_0)`, of which γ₀ is what the gate is at zero.

What a sigmoid gives is a gate. It stays one under every operation that makes each entry of its result of one entry of
the gate: a re-arrangement, a copy, a cast, a mask, a held factor, a number that is added (1 - γ among them). So the way
of writing does not matter. A product of gates is a gate that acts on a content as its factors do, the right one first.
A sum over entries is not a gate; neither is the sum of a gate and a content. An entry that is zero at zero is a
content: those of 2 σ(2x) - 1 = tanh x, and those that a model puts beside gates in one tensor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.tensor_facts.memory_layout import entries_of_view, laid_out_as, without_repeats
from unrolled.held_forward.tensor_facts.moves import CONVERSIONS, MOVES
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes

__all__ = ["CONTENT_SHARE", "OF_ONE_ENTRY", "Gate", "Gates"]

CONTENT_SHARE = 0.75
"""p, unless another one is asked for; docs/results/ours-content-share.md compares others."""

OF_ONE_ENTRY = (
    MOVES
    | CONVERSIONS
    | frozenset(
        "neg real imag conj diag diag_embed tril triu _pack_padded_sequence upsample_nearest1d upsample_nearest2d "
        "upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d".split()
    )
)
"""Operations on one tensor under which a gate stays a gate: what they put beside its entries is zero."""

_HIGHEST = 16
"""The highest power of a gate that is one: each takes a product more, and a higher one is a content."""
_LAST = 4
"""How many sigmoids may be computed last, beside that of which a sum takes entries, as for their arg max."""
_ROUNDINGS = 8
"""How many roundings a tensor may be off the sum of its two parts."""
_AT_ZERO = ("constant", "held")
"""The origins of what belongs to γ₀ where it is added to a gate: numbers of the code, and results that are held."""


@dataclass(frozen=True)
class Gate:
    """The two parts of a gate. The gate itself is an ordinary tensor, in which γ₀ has a row."""

    risen: Tensor
    """γ - γ₀, which carries value."""
    at_zero: Tensor
    """γ₀, held, in the shape of the gate."""
    of_gates: bool = False
    """Whether it is a product of gates. As a content the tensor shares it between these, and γ₀ has no row in it."""

    @cached_property
    def _zeros(self) -> tuple[bool, bool]:
        """Whether some entries of γ₀ are zero, and whether all are."""
        known = without_repeats(self.at_zero)
        count = int(known.count_nonzero())
        return count < known.numel(), count == 0

    @cached_property
    def contents(self) -> Tensor | None:
        """Which entries are contents; None if no entry is one."""
        some, _ = self._zeros
        if not some:
            return None
        contents = (self.at_zero == 0) & (self.risen.detach() != 0)
        return contents if bool(contents.any()) else None

    def of_content(self, share: float) -> Tensor:
        """Return what multiplies a content that keeps its value: γ₀ + p (γ - γ₀), held; half of a content."""
        if self.contents is None:
            return torch.add(self.at_zero, self.risen.detach(), alpha=share)
        return torch.where(self.contents, 0.5, share) * self.risen.detach() + self.at_zero

    def of_gate(self, share: float) -> Tensor:
        """Return what multiplies a content that is held: (1 - p) (γ - γ₀); half of a content."""
        return (1 - (share if self.contents is None else torch.where(self.contents, 0.5, share))) * self.risen

    def times(self, content: Tensor, share: float) -> Tensor:
        """Return the product with a content."""
        kept, held = self.of_content(share) * content, content.detach()
        if self.contents is None:
            return torch.addcmul(kept, held, self.risen, value=1 - share)
        return torch.addcmul(kept, held, self.of_gate(share))

    def behind(self, first: Gate, share: float) -> Gate:
        """Return the gate γ γ', which acts on a content as γ does on what γ' (the first) makes of it."""
        kept, value = self.of_content(share), first.at_zero + first.risen.detach()
        risen = self.risen * value + kept * first.risen
        return Gate(risen, torch.sub(kept * first.of_content(share), risen.detach(), alpha=share), of_gates=True)

    @property
    def is_content(self) -> bool:
        """Whether every entry is nothing at zero, so that products share it as a content."""
        _, all_of_them = self._zeros
        return all_of_them


class Gates:
    """The gates of a run. A tensor whose entries were changed in place since is none any more.

    Args:
        rows: Tells constants of the code and held results, which belong to γ₀, from parameters, which have rows.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._kept: TensorNotes[tuple[Any, int]] = TensorNotes()
        self.last: deque[Gate] = deque(maxlen=_LAST)
        """What the last sigmoids of the run gave, also where a sum has since taken entries of it."""

    def keep(self, tensor: Tensor, gate: Gate) -> Tensor:
        """Remember the parts of a tensor, and give it back."""
        self._kept[tensor] = (gate, tensor._version)
        return tensor

    def keep_sigmoid(self, tensor: Tensor, gate: Gate) -> Tensor:
        """Remember the result of a sigmoid, and give it back."""
        self.last.append(gate)
        return self.keep(tensor, gate)

    def of(self, tensor: object) -> Gate | None:
        """Return the parts of a gate, or of a view of one; None for any other operand."""
        if not isinstance(tensor, Tensor):
            return None
        if tensor not in self._kept:
            return self._of_view(tensor)
        gate: Gate
        gate, version = self._kept[tensor]
        if version == tensor._version:
            return gate
        if not _is_sum(tensor.detach(), gate):
            return None
        self.keep(tensor, gate)  # another part of its memory was changed, as where gates are slices of one product
        return gate

    def _of_view(self, tensor: Tensor) -> Gate | None:
        """Return the parts of a view that was made before its memory became a gate."""
        whole = _whole_of(tensor)
        gate = None if whole is None or whole not in self._kept else self.of(whole)
        if whole is None or gate is None:
            return None
        parts = (laid_out_as(whole, part) for part in (gate.risen, gate.at_zero))
        risen, at_zero = (entries_of_view(part, whole, tensor) for part in parts)
        return Gate(risen, at_zero, gate.of_gates)

    def copy(self, tensor: Tensor) -> Tensor:
        """Copy a tensor; the copy of a gate is one, and that of a parameter has its name."""
        copy, gate = tensor.clone(), self.of(tensor)
        self._rows.inherit(copy, [tensor])
        return copy if gate is None else self.keep(copy, gate)

    def write(self, part: Tensor, result: Tensor) -> None:
        """Write a result over a tensor, and remember where that tensor and the one it is a part of are gates now."""
        gate, whole = self.of(result), _whole_of(part)
        before = self.copy(whole) if whole is not None and (gate or self.of(whole)) else None
        part.copy_(result)
        if gate is not None and (result.shape, result.dtype) == (part.shape, part.dtype):
            self.keep(part, gate)
        if whole is None or before is None:
            return

        def written(parts: list[Any]) -> Tensor:
            copied = laid_out_as(whole, parts[0])
            entries_of_view(copied, whole, part).copy_(parts[1])
            return copied

        self.keep_chosen(whole, (before, result), written)

    def keep_each(self, results: Any, risen: Any, at_zero: Any, of_gates: bool = False) -> None:
        """Remember the parts of the results of an operation; what carries no value (sizes) is no gate."""
        several = (each if isinstance(each, tuple | list) else (each,) for each in (results, risen, at_zero))
        for tensor, rise, start in zip(*several, strict=True):
            if tensor.requires_grad:
                self.keep(tensor, Gate(rise, start, of_gates))

    def keep_sum(self, result: Tensor, terms: Sequence[Any], add: Callable[[list[Any]], Tensor]) -> Tensor:
        """Let a sum be a gate if each term is a gate or belongs to γ₀."""
        known = all(self.of(each) or self._is_at_zero(each) for each in terms)
        return self.keep_chosen(result, terms, add) if known else result

    def keep_chosen(self, result: Tensor, entries: Sequence[Any], choose: Callable[[list[Any]], Tensor]) -> Tensor:
        """Let a result be a gate where its entries are those of a gate or belong to γ₀.

        Args:
            result: Of the operation.
            entries: Its operands, tensors and numbers.
            choose: Computes the operation; linear in the operands together.
        """
        gates = [self.of(each) for each in entries]
        if not any(gates):
            return result
        others = [not gate and not self._is_at_zero(each) for gate, each in zip(gates, entries, strict=True)]
        risen = [gate.risen if gate else _like(each, 0.0) for gate, each in zip(gates, entries, strict=True)]
        at_zero = [
            gate.at_zero if gate else _like(each, 0.0) if other else each
            for gate, each, other in zip(gates, entries, others, strict=True)
        ]
        chosen = choose(risen).to(result)
        if any(others):  # contents, and what the model adds: nothing of them is left at zero
            of_others = choose([_like(each, float(other)) for each, other in zip(entries, others, strict=True)])
            chosen = torch.where(of_others != 0, result, chosen)
        of_gates = any(gate.of_gates for gate in gates if gate)
        return self.keep(result, Gate(chosen, choose(at_zero).to(result), of_gates))

    def keep_power(self, result: Tensor, x: Tensor, exponent: float, share: float) -> Tensor:
        """Let a whole power of a gate be the product of as many gates."""
        gate = self.of(x)
        if gate is None or gate.contents is not None or exponent not in range(1, _HIGHEST + 1):
            return result
        return self.keep(result, reduce(lambda first, last: last.behind(first, share), [gate] * int(exponent)))

    def _is_at_zero(self, value: Any) -> bool:
        """Whether an operand belongs to γ₀: it has no value, and is no parameter."""
        return not isinstance(value, Tensor) or (not value.requires_grad and self._rows.origin(value).kind in _AT_ZERO)


def _like(value: Any, number: float) -> Any:
    """Return a number in the form of an operand."""
    return torch.full_like(value, number) if isinstance(value, Tensor) else number


def _whole_of(view: Tensor) -> Tensor | None:
    """Return the tensor that a view takes entries of; None if it reads others, as parts of complex numbers."""
    whole = view._base
    return whole if whole is not None and whole.dtype == view.dtype else None


def _is_sum(value: Tensor, gate: Gate) -> bool:
    """Whether a tensor is the sum of the two parts up to rounding."""
    parts = gate.risen.detach(), gate.at_zero
    if value.shape != gate.risen.shape:
        return False
    size = max(float(each.abs().max()) for each in (value, *parts)) if value.numel() else 0.0
    return bool(((parts[0] + parts[1] - value).abs() <= _ROUNDINGS * torch.finfo(value.dtype).eps * size).all())
