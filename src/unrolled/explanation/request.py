"""What a user asks of an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unrolled.errors import UsageError
from unrolled.expansions.base import Expansion
from unrolled.explanation.choice import Wanted
from unrolled.explanation.tokens.sequence_names import Words

__all__ = ["Request"]


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`unrolled.explain`, validated."""

    args: tuple[object, ...]
    kwargs: dict[str, object]
    wanted: Wanted
    tokens: Words
    features: Sequence[str] | None
    """Names of the numbers of a step."""
    expansion: Expansion
    max_order: int | None
    readout: str
    call: int | None
    several: bool
    """Whether the output may have several examples."""

    @property
    def arguments(self) -> tuple[object, ...]:
        """All arguments of the model."""
        return (*self.args, *self.kwargs.values())

    def refuse_several(self, examples: int) -> None:
        """Refuse a batch where one example is to be explained."""
        if examples != 1 and not self.several:
            raise UsageError(f"the batch has {examples} examples; expected one: use unrolled.explain_batch")
