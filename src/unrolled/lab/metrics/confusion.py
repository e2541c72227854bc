"""How the classes of a split are told apart: precision, recall and F1 of each, and the confusion matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ClassScores", "Confusion"]


@dataclass(frozen=True)
class ClassScores:
    """The scores of one class; a quotient by zero is 0."""

    name: str
    precision: float
    recall: float
    f1: float
    examples: int


@dataclass(frozen=True)
class Confusion:
    """How often an example of one class was predicted to be of another."""

    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    """counts[i][j]: examples of class i that were predicted to be of class j."""

    @classmethod
    def of(cls, classes: Sequence[str], truths: Sequence[int], answers: Sequence[int]) -> Confusion:
        """Count the pairs of true and predicted classes, given by their indices."""
        found = Counter(zip(truths, answers, strict=True))
        numbers = range(len(classes))
        return cls(tuple(classes), tuple(tuple(found[i, j] for j in numbers) for i in numbers))

    @property
    def scores(self) -> tuple[ClassScores, ...]:
        """Return precision, recall and F1 of every class."""
        predicted = [sum(column) for column in zip(*self.counts, strict=True)]
        rows = []
        for number, (name, row) in enumerate(zip(self.classes, self.counts, strict=True)):
            right, there = row[number], sum(row)
            precision = right / predicted[number] if predicted[number] else 0.0
            recall = right / there if there else 0.0
            f1 = 2 * right / (predicted[number] + there) if right else 0.0
            rows.append(ClassScores(name, precision, recall, f1, there))
        return tuple(rows)

    @property
    def only_answer(self) -> str | None:
        """The class that was predicted for every example, although they are of several; None if there is none."""
        predicted = [
            name for name, column in zip(self.classes, zip(*self.counts, strict=True), strict=True) if any(column)
        ]
        return predicted[0] if len(predicted) == 1 and sum(map(any, self.counts)) > 1 else None

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that have examples or were predicted."""
        known = [
            score.f1
            for score, column in zip(self.scores, zip(*self.counts, strict=True), strict=True)
            if score.examples or sum(column)
        ]
        return sum(known) / len(known) if known else 0.0
