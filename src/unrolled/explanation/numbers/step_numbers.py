"""The numbers that an example reads step by step, with what each contributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unrolled.explanation.model_arguments import shown_argument
from unrolled.explanation.numbers.no_numbers import MIXED, MixedNumbersError, NotByStepsError

__all__ = [
    "BIASES",
    "HELD_AND_BIASES",
    "OTHER_NUMBERS",
    "OTHER_STEPS",
    "ArgumentNumbers",
    "Numbers",
    "joined_numbers",
    "joined_rest",
]

BIASES = "biases"
HELD_AND_BIASES = "held results and biases"
OTHER_STEPS = "other steps and biases"
OTHER_NUMBERS = "other numbers and biases"
"""What else contributes at a step: values of :attr:`Numbers.rest_of`."""


@dataclass(frozen=True)
class Numbers:
    """The numbers that one example reads, step by step."""

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
    alone: bool = True
    """Whether these are all arguments with numbers; the features of one such argument need not name it."""

    def names(self, argument_names: Mapping[str, str]) -> tuple[str, ...]:
        """Name the features, with their argument as the model's forward calls it where there may be several."""
        if self.alone and len(self.parts) == 1:
            return tuple(f"feature {k}" for k in range(self.values.shape[1]))
        return tuple(
            f"{shown_argument(part.name, argument_names)}, feature {k}"
            for part in self.parts
            for k in range(part.values.shape[1])
        )

    @property
    def steps(self) -> tuple[int, ...] | None:
        """The steps of the arguments at which the numbers of each position stand; None if these differ."""
        found = {part.steps for part in self.parts}
        return found.pop() if len(found) == 1 else None

    @classmethod
    def mean(cls, members: Sequence[Numbers]) -> Numbers:
        """Average what the members of an expansion say of the same numbers.

        An argument of which a member has no number contributes nothing there, or in the rest.

        Raises:
            MixedNumbersError: If not all members tell the numbers of one step from those of others.
        """
        known: dict[str, list[ArgumentNumbers]] = {}
        for each in sorted(members, key=lambda member: -len(member.parts)):
            for part in each.parts:
                known.setdefault(part.name, []).append(part)
        if any(part.scores.shape != same[0].scores.shape for same in known.values() for part in same) or any(
            len(each.values) != len(members[0].values) for each in members
        ):
            raise MixedNumbersError(MIXED)
        parts = [
            replace(same[0], scores=torch.stack([part.scores.double() for part in same]).sum(dim=0) / len(members))
            for same in known.values()
        ]
        return replace(
            joined_numbers(parts, all(each.alone for each in members)),
            rest_of=joined_rest([each.rest_of for each in members]),
            notes=tuple(dict.fromkeys(note for each in members for note in each.notes)),
            unnamed=tuple(dict.fromkeys(name for each in members for name in each.unnamed if name not in known)),
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
    first: int = -1
    """The number of its first entry among those of all arguments."""
    steps: tuple[int, ...] | None = None
    """The step of the argument at which the numbers of each position stand; None if no one axis has a step for each."""

    @property
    def reads_nothing(self) -> bool:
        """Whether no step reads any of it."""
        return self.empty == len(self.values)


def joined_numbers(parts: Sequence[ArgumentNumbers], alone: bool = True) -> Numbers:
    """Put the features of several arguments side by side.

    Args:
        parts: By argument.
        alone: Whether these are all arguments with numbers.

    Raises:
        NotByStepsError: If there are none.
    """
    if not parts:
        raise NotByStepsError
    values = torch.cat([each.values.double().cpu() for each in parts], dim=1)
    scores = torch.cat([each.scores.double().cpu() for each in parts], dim=1)
    return Numbers(values, scores, parts=tuple(parts), alone=alone)


def joined_rest(kinds: Iterable[str]) -> str:
    """Name what else contributes to several numbers of a step, by what does to each."""
    more = set(kinds) - {BIASES}
    return BIASES if not more else more.pop() if len(more) == 1 else OTHER_NUMBERS
