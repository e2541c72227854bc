"""The result of :func:`unrolled.explain_batch`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from unrolled.explanation.explanation import Explanation

__all__ = ["Explanations"]


@dataclass(frozen=True, repr=False)
class Explanations(Sequence[Explanation]):
    """The explanations of several examples, in the order of the model's output; a read-only sequence."""

    members: tuple[Explanation, ...]

    @overload
    def __getitem__(self, place: int) -> Explanation: ...

    @overload
    def __getitem__(self, place: slice) -> Explanations: ...

    def __getitem__(self, place: int | slice) -> Explanation | Explanations:
        if isinstance(place, slice):
            return Explanations(self.members[place])
        return self.members[place]

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        return f"Explanations({len(self)}: {', '.join(map(repr, self.members[:3]))}{', …' if len(self) > 3 else ''})"
