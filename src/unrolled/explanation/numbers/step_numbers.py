"""The numbers that an example reads step by step, with what each contributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unrolled.explanation.numbers.no_numbers import MIXED, MixedNumbersError, NotByStepsError

__all__ = ["BIASES", "HELD", "OTHER_NUMBERS", "OTHER_STEPS", "ArgumentNumbers", "Numbers", "joined_numbers"]

BIASES = "biases"
HELD = "held results and biases"
OTHER_STEPS = "other steps and biases"
OTHER_NUMBERS = "other numbers and biases"
"""What else contributes at a step: values of :attr:`Numbers.rest_of`."""


@dataclass(frozen=True)
class Numbers:
    """The numbers that one example reads, step by step."""

    names: tuple[str, ...]
    values: Tensor
    """Shape (time, features)."""
    scores: Tensor
    """Contribution of each, shape (time, features)."""
    rest_of: str = BIASES
    """What else contributes at a step."""
    notes: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()
    """Other arguments that have numbers for each step, which names of features may mean."""
    parts: tuple[ArgumentNumbers, ...] = ()
    """The same by argument."""

    @classmethod
    def mean(cls, members: Sequence[Numbers]) -> Numbers:
        """Average what the members of an expansion say of the same numbers.

        An argument of which a member has no number contributes nothing there, or in the rest.

        Raises:
            MixedNumbersError: If not all members tell the numbers of one step from those of others.
        """
        first = members[0]
        if all(each.names == first.names and each.scores.shape == first.scores.shape for each in members):
            return replace(first, scores=torch.stack([each.scores for each in members]).mean(dim=0))
        known: dict[str, list[ArgumentNumbers]] = {}
        for each in sorted(members, key=lambda member: -len(member.parts)):
            for part in each.parts:
                known.setdefault(part.name, []).append(part)
        if any(part.scores.shape != same[0].scores.shape for same in known.values() for part in same) or any(
            len(each.values) != len(first.values) for each in members
        ):
            raise MixedNumbersError(MIXED)
        parts = [
            replace(same[0], scores=torch.stack([part.scores for part in same]).sum(dim=0) / len(members))
            for same in known.values()
        ]
        kinds = {each.rest_of for each in members}
        return replace(
            joined_numbers(parts),
            rest_of=kinds.pop() if len(kinds) == 1 else OTHER_NUMBERS,
            notes=tuple(dict.fromkeys(note for each in members for note in each.notes)),
        )


@dataclass(frozen=True)
class ArgumentNumbers:
    """The numbers of one argument that one example reads, step by step."""

    name: str
    values: Tensor
    """Shape (time, features)."""
    scores: Tensor
    """The same shape."""
    empty: int = 0
    """The number of steps that read none of it, for which zeros stand."""

    @property
    def reads_nothing(self) -> bool:
        """Whether no step reads any of it."""
        return self.empty == len(self.values)


def joined_numbers(parts: Sequence[ArgumentNumbers], alone: bool = True) -> Numbers:
    """Put the features of several arguments side by side.

    Args:
        parts: By argument.
        alone: Whether these are all arguments with numbers; the features of one such argument need not name it.

    Raises:
        NotByStepsError: If there are none.
    """
    if not parts:
        raise NotByStepsError
    names = [
        f"feature {k}" if alone and len(parts) == 1 else f"{each.name}, feature {k}"
        for each in parts
        for k in range(each.values.shape[1])
    ]
    values = torch.cat([each.values.double().cpu() for each in parts], dim=1)
    scores = torch.cat([each.scores.double().cpu() for each in parts], dim=1)
    return Numbers(tuple(names), values, scores, parts=tuple(parts))
