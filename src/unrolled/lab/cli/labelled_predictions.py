"""The predictions for a labelled split beside its labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unrolled.lab.cli.prediction_file import Prediction, predicted_rows
from unrolled.lab.metrics.confusion import Confusion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from unrolled.lab.training.run_folder import Run

__all__ = ["LabelledPredictions", "is_text_classification", "predict_classes", "predict_ratings"]


@dataclass(frozen=True)
class LabelledPredictions:
    """Every example of a split with its prediction and its class."""

    rows: tuple[Prediction, ...]
    classes: tuple[str, ...]
    labels: tuple[int, ...]
    """The class of each example, by index."""
    answers: tuple[int, ...]
    """The class that is predicted for it."""

    @property
    def confusion(self) -> Confusion:
        """How often an example of one class was predicted to be of another."""
        return Confusion.of(self.classes, self.labels, self.answers)

    @property
    def worst(self) -> list[int]:
        """The numbers of the errors, the surest of a wrong class first."""
        wrong = [
            place
            for place, (label, answer) in enumerate(zip(self.labels, self.answers, strict=True))
            if label != answer
        ]
        return sorted(wrong, key=lambda place: self.rows[place].probabilities[self.labels[place]])


def is_text_classification(run: Run) -> bool:
    """Tell whether a run predicts one class of a whole text."""
    from unrolled.lab.training.text_tasks import TextClassification

    return isinstance(run.task, TextClassification)


def predict_classes(run: Run, examples: Sequence[Any], outputs: NDArray[np.float64]) -> LabelledPredictions:
    """Predict the classes of a split from the model's outputs for it."""
    classes = run.task.classes
    index = {name: number for number, name in enumerate(classes)}
    found = predicted_rows(outputs, classes)
    rows = tuple(
        Prediction(_text(run, example), predicted, probabilities, classes[example.label], example.origin)
        for example, (predicted, probabilities) in zip(examples, found, strict=True)
    )
    labels = tuple(example.label for example in examples)
    return LabelledPredictions(rows, classes, labels, tuple(index[row.predicted] for row in rows))


def predict_ratings(run: Run, examples: Sequence[Any], outputs: NDArray[np.float64]) -> tuple[Prediction, ...]:
    """Predict the ratings of a split from the model's outputs for it."""
    found = predicted_rows(outputs, ())
    pairs = zip(examples, found, strict=True)
    return tuple(
        Prediction(_text(run, each), said, (), repr(each.rating).removesuffix(".0"), each.origin)
        for each, (said, _) in pairs
    )


def _text(run: Run, example: Any) -> str:
    """Return what the model read: the text as its file has it, or its tokens if ``--max-length`` cut it."""
    at_bound = len(example.tokens) == run.data.max_length
    if at_bound and len(run.text_task().tokenise(example.text)) > len(example.tokens):
        return " ".join(example.tokens)
    return example.text or " ".join(example.tokens)
