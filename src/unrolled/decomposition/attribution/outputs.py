"""What a model gave beside the explained output: all its classes, and the numbers that it read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unrolled.decomposition.attribution.own_memory import OwnMemory

__all__ = ["Features", "Outputs", "OutputsKind"]

OutputsKind = Literal["numbers", "probabilities", "log-probabilities", "sigmoids"]
"""What the outputs of a model are together; numbers may be logits, or the values of a regression."""


@dataclass(frozen=True)
class Outputs:
    """All outputs of a model for one example, and which of them is explained."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    target: int
    """Index of the explained output."""
    against: int | None = None
    """Index of the output that is subtracted from it, if the difference of two is explained."""
    true: int | None = None
    """Index of the right class, where it is known."""
    alone: bool = False
    """Whether a page shows the explained one of two outputs first, and not its difference to the other."""
    kind: OutputsKind = "numbers"

    @property
    def predicted(self) -> int:
        """Index of the highest output."""
        return max(range(len(self.values)), key=self.values.__getitem__)

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The softmax of the outputs, or the outputs if they are probabilities already.

        They are the model's probabilities if its outputs are logits, probabilities or logarithms of them. Empty if
        there is only one output, and for the results of sigmoids, each of which is a probability by itself.
        """
        if len(self.values) < 2 or self.kind == "sigmoids":
            return ()
        return self.values if self.kind == "probabilities" else _softmax(self.values)

    @property
    def probability_name(self) -> str:
        """What the page calls :attr:`probabilities`, or empty: *softmax* if the outputs may be no logits."""
        if not self.probabilities:
            return ""
        return "softmax" if self.kind == "numbers" else "probability"

    def contrast_name(self, target: int, against: int | None) -> str:
        """Return the name of an output, or of the difference of two."""
        return self.names[target] if against is None else f"{self.names[target]} rather than {self.names[against]}"


def _softmax(values: Sequence[float]) -> tuple[float, ...]:
    highest = max(values)
    powers = [math.exp(value - highest) for value in values]
    total = sum(powers)
    return tuple(power / total for power in powers)


@dataclass(frozen=True, eq=False)
class Features(OwnMemory):
    """The numbers that a model read at each step, and what each contributed to the explained output."""

    names: tuple[str, ...]
    values: Tensor
    """Shape (time, features)."""
    scores: Tensor
    """Contribution of each number, shape (time, features)."""
    rest: Tensor
    """What each step contributes beyond its numbers, shape (time,)."""
    rest_of: str = "biases"
    """What makes the rest."""

    def to_records(self, steps: Sequence[str]) -> list[dict[str, object]]:
        """Return every number as a dictionary, step by step, for a data frame; the rest of a step has no value."""
        names = (*self.names, f"rest ({self.rest_of})")
        values = [[*numbers, None] for numbers in self.values.tolist()]
        scores = torch.cat([self.scores, self.rest[:, None]], dim=1).tolist()
        return [
            {"step": t, "name": step, "feature": feature, "value": value, "contribution": score}
            for t, step in enumerate(steps)
            for feature, value, score in zip(names, values[t], scores[t], strict=True)
        ]
