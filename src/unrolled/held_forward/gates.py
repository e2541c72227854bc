r"""Gates of a held run: :math:`γ = γ_0 + (γ - γ_0)`, of which γ₀ is what the gate is at zero.

What a sigmoid gives is a gate. It stays one under every operation that makes each entry of its result of one entry of
the gate: a re-arrangement, a copy, a cast, a mask, a held factor, a number that is added (1 - γ among them). So the way
of writing does not matter. A product of gates is a gate that acts on a content as its factors do, the right one first.
A sum over entries is not a gate; neither is the sum of a gate and a content. A result that is zero at zero, such as
2 σ(2x) - 1 = tanh x, is a content.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from unrolled.held_forward.repeated_axes import without_repeats
from unrolled.held_forward.rows import Rows

__all__ = ["OF_ONE_ENTRY", "Gate", "Gates"]

OF_ONE_ENTRY = frozenset(
    (
        "view view_as reshape reshape_as permute transpose t adjoint squeeze unsqueeze flatten unflatten ravel movedim "
        "expand expand_as broadcast_to repeat repeat_interleave tile flip fliplr flipud roll rot90 narrow select "
        "index_select gather take_along_dim unbind chunk split split_with_sizes tensor_split unfold diagonal diag "
        "diag_embed tril triu clone contiguous to float double half bfloat16 type type_as cpu cuda real "
        "masked_select neg getitem select_copy pixel_shuffle pixel_unshuffle positive _pack_padded_sequence "
        "upsample_nearest1d upsample_nearest2d channel_shuffle resolve_conj resolve_neg "
        "take linalg_diagonal slice hsplit vsplit dsplit unsafe_chunk unsafe_split"
    ).split()
)
"""Operations on one tensor that move, copy or cast entries: a gate stays a gate under them."""


_HIGHEST = 16
"""The highest power of a gate that is one."""


@dataclass(frozen=True)
class Gate:
    """The two parts of a gate. The gate itself is an ordinary tensor, in which γ₀ has a row."""

    risen: Tensor
    """γ - γ₀, which carries value."""
    at_zero: Tensor
    """γ₀, held, in the shape of the gate."""
    of_gates: bool = False
    """Whether it is a product of gates. As a content the tensor shares it between these, and γ₀ has no row in it."""

    def of_content(self, share: float) -> Tensor:
        """Return what multiplies a content that keeps its value: γ₀ + p (γ - γ₀), held."""
        return torch.add(self.at_zero, self.risen.detach(), alpha=share)

    def behind(self, first: Gate, share: float) -> Gate:
        """Return the gate γ γ', which acts on a content as γ does on what γ' (the first) makes of it."""
        kept, value = self.of_content(share), first.at_zero + first.risen.detach()
        risen = self.risen * value + kept * first.risen
        return Gate(risen, torch.sub(kept * first.of_content(share), risen.detach(), alpha=share), of_gates=True)

    @property
    def is_content(self) -> bool:
        """Whether it is nothing at zero, so that products share it as a content."""
        return not bool(without_repeats(self.at_zero).count_nonzero())


class Gates:
    """The gates of a run. A tensor whose entries were changed in place since is none any more.

    Args:
        rows: Tells the constants of the code, which belong to γ₀, from parameters and held results, which have rows.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._kept: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

    def keep(self, tensor: Tensor, gate: Gate) -> Tensor:
        """Remember the parts of a tensor, and give it back."""
        self._kept[tensor] = (gate, tensor._version)
        return tensor

    def of(self, tensor: object) -> Gate | None:
        """Return the parts of a gate; None for any other operand."""
        if not isinstance(tensor, Tensor) or tensor not in self._kept:
            return None
        gate: Gate
        gate, version = self._kept[tensor]
        if version == tensor._version:
            return gate
        if not _is_sum(tensor.detach(), gate):
            return None
        self.keep(tensor, gate)  # another part of its memory was changed, as where gates are slices of one product
        return gate

    def keep_each(self, results: Any, risen: Any, at_zero: Any, of_gates: bool = False) -> None:
        """Remember the parts of the results of an operation; what carries no value (sizes) is no gate."""
        several = (each if isinstance(each, tuple | list) else (each,) for each in (results, risen, at_zero))
        for tensor, rise, start in zip(*several, strict=True):
            if tensor.requires_grad:
                self.keep(tensor, Gate(rise, start, of_gates))

    def keep_chosen(self, result: Tensor, entries: Sequence[Any], choose: Callable[[list[Any]], Tensor]) -> Tensor:
        """Let a result be a gate if each entry of it is that of a gate or a constant of the code.

        Args:
            result: Of the operation.
            entries: Its operands, tensors and numbers.
            choose: Computes the operation; linear in the operands together.
        """
        gates = [self.of(each) for each in entries]
        if any(gates) and all(gate or self._is_constant(each) for gate, each in zip(gates, entries, strict=True)):
            risen = [
                gate.risen if gate else torch.zeros_like(each) if isinstance(each, Tensor) else 0.0
                for gate, each in zip(gates, entries, strict=True)
            ]
            at_zero = [gate.at_zero if gate else each for gate, each in zip(gates, entries, strict=True)]
            of_gates = any(gate.of_gates for gate in gates if gate)
            self.keep(result, Gate(choose(risen).to(result), choose(at_zero).to(result), of_gates))
        return result

    def keep_power(self, result: Tensor, x: Tensor, exponent: float, share: float) -> Tensor:
        """Let a whole power of a gate be the product of as many gates."""
        gate = self.of(x)
        if gate is None or gate.is_content or exponent not in range(1, _HIGHEST + 1):
            return result
        return self.keep(result, reduce(lambda first, last: last.behind(first, share), [gate] * int(exponent)))

    def _is_constant(self, value: Any) -> bool:
        """Whether an operand is a constant of the code: no value, no parameter, no held result."""
        return not isinstance(value, Tensor) or (not value.requires_grad and self._rows.origin(value)[0] == "constant")


def _is_sum(value: Tensor, gate: Gate) -> bool:
    """Whether a tensor is the sum of the two parts up to rounding."""
    parts = gate.risen.detach(), gate.at_zero
    if value.shape != gate.risen.shape:
        return False
    size = max(float(each.abs().max()) for each in (value, *parts)) if value.numel() else 0.0
    return bool(((parts[0] + parts[1] - value).abs() <= 8 * torch.finfo(value.dtype).eps * size).all())
