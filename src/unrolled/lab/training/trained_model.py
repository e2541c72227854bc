"""What a trained model of texts is used for: predictions, probabilities, a score, and explanations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from torch import nn

from unrolled.errors import ShapeError, UnknownNameError, UsageError
from unrolled.lab.data.batches.base import MAX_TOKENS, EncodedTexts, bounded_plan
from unrolled.lab.data.text_lists import check_list, check_strings, name_places, shown_kind
from unrolled.lab.data.vocabulary import UNKNOWN_WORD
from unrolled.lab.models.evaluation_mode import evaluation_mode
from unrolled.lab.training.task import Task
from unrolled.lab.training.text_tasks import TextTask
from unrolled.report.formatting import counted
from unrolled.report.unknown_words import mark_unknown, note_unknown

if TYPE_CHECKING:
    from unrolled.explanation.explanation import Explanation
    from unrolled.explanation.explanations import Explanations

__all__ = ["TrainedModel"]


def _class_of(label: Any, classes: Sequence[str]) -> str:
    """Return the name of a class that was given as a string, a number or a truth value; UnknownNameError if none."""
    name = str(label)
    if isinstance(label, bool | np.bool_) and name not in classes:
        name = name.lower()  # files write true as often as True
    if name not in classes:
        raise UnknownNameError("label", name, classes)
    return name


def _finite(ratings: Sequence[Any]) -> NDArray[np.float64]:
    """Return ratings as an array; UsageError names the first that is no finite number."""
    for place, rating in enumerate(ratings):
        try:
            known = math.isfinite(float(rating))
        except (TypeError, ValueError):
            known = False
        if not known:
            raise UsageError(f"labels[{place}] is {rating!r}; expected a finite number")
    return np.array([float(rating) for rating in ratings])


class TrainedModel:
    """A trained model with its task, as scikit-learn's users know one: ``predict``, ``predict_proba``, ``score``.

    These three are for tasks with one output for a whole text: classes, relations and ratings. ``explain`` is for every
    task that can open a text.
    """

    task: Task[Any, Any]
    model: nn.Module

    def predict(self, texts: Sequence[str]) -> NDArray[Any]:
        """Predict the label of each text, or its rating.

        Args:
            texts: Texts as people type them; they are split into words as those of the training.

        Returns:
            Labels, or ratings in float64; shape (texts,).

        Raises:
            UsageError: If the task has no one output for a text, or some texts are no strings or have no word; it
                names their indices.
        """
        outputs = self._outputs(texts)
        classes = self.task.classes
        if not classes:
            return outputs[:, 0]
        return np.array(classes, dtype=object)[outputs.argmax(axis=1)]

    def predict_proba(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Predict the probability of each class, in the order of ``task.classes``; shape (texts, classes).

        Raises:
            UsageError: If the task has no classes of a whole text; else as in :meth:`predict`.
        """
        outputs = self._outputs(texts)
        if not self.task.classes:
            raise UsageError(f"a run of the task {self.task.name} predicts numbers, not classes; use predict")
        return np.asarray(softmax(outputs, axis=1))

    def score(self, texts: Sequence[str], labels: Sequence[Any]) -> float:
        """Return the accuracy; for a task of ratings R², 1 minus the squared error over the variance of the ratings.

        A class whose name is a number or a truth value, as ``"3"`` or ``"true"``, may be given as that value.

        Raises:
            UsageError: As in :meth:`predict`; or a rating is no finite number.
            UnknownNameError: If a label is none of the task's.
            ShapeError: If there are not as many labels as texts.
        """
        check_list(labels, "labels")
        predicted = self.predict(texts)
        if len(labels) != len(predicted):
            raise ShapeError(
                f"{counted(len(labels), 'label')} for {counted(len(predicted), 'text')}; expected one for each"
            )
        classes = self.task.classes
        if classes:
            names = [_class_of(label, classes) for label in labels]
            return float(np.mean([found == name for found, name in zip(predicted, names, strict=True)]))
        truth = _finite(labels)
        spread = float(np.square(truth - truth.mean()).sum())
        error = float(np.square(predicted - truth).sum())
        return 1 - error / spread if spread else 1.0 if not error else 0.0

    def explain(
        self,
        text: str,
        target: str | int | None = None,
        at: int | None = None,
        expansion: str = "secant",
        **options: Any,
    ) -> Explanation:
        """Explain the model's output for a text.

        Args:
            text: A text as people type it; of some tasks in their own form, as for ``unrolled explain``.
            target: A label, or the index of an output; None for the predicted one.
            at: Position, from 0, of the word whose output is explained, for a model with an output for every word.
            expansion: See :func:`unrolled.decompose`.
            **options: Other options of :func:`unrolled.explain`.

        Raises:
            UsageError: If the text is empty or the task cannot open a text.
            UnknownNameError: If there is no such label or expansion.
        """
        from unrolled.explanation.api import explain

        if not isinstance(text, str):
            raise UsageError(f"the text is {shown_kind(text)}; expected a string")
        prepared = self.task.prepare(self.model, text, at)
        found = explain(
            prepared.model,
            *prepared.inputs,
            target=target,
            classes=prepared.outputs or None,
            tokens=mark_unknown(prepared.tokens, prepared.unknown),
            expansion=expansion,
            rnn=prepared.rnn,
            **options,
        )
        return replace(found, notes=(*found.notes, *note_unknown(prepared.unknown, UNKNOWN_WORD)))

    def explain_batch(
        self, texts: Sequence[str], target: str | int | None = None, expansion: str = "secant", **options: Any
    ) -> Explanations:
        """Explain the model's output for every text, each as :meth:`explain` does.

        Give a ``target`` to ask for the phrases of all texts: ``run.explain_batch(texts, "positive").phrases()``.
        """
        from unrolled.explanation.explanations import Explanations

        check_list(texts, "texts")
        check_strings(texts)
        if empty := [place for place, text in enumerate(texts) if not text.strip()]:
            raise UsageError(f"{name_places(empty)} without a word; leave out such texts")
        return Explanations(tuple(self.explain(text, target, expansion=expansion, **options) for text in texts))

    def text_task(self) -> TextTask[Any]:
        """Return the task, which has one output for a whole text; UsageError if it has not."""
        if not isinstance(self.task, TextTask):
            raise UsageError(
                f"a run of the task {self.task.name} has no one output for a whole text; give a run of classify, "
                "relate or regress (tag and translate are commands of their own)"
            )
        return self.task

    def _outputs(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Run the model on texts; shape (texts, outputs)."""
        task = self.text_task()
        check_list(texts, "texts")
        check_strings(texts)
        words = [task.tokenise(text) if text.strip() else () for text in texts]
        empty = [place for place, each in enumerate(words) if not each]
        if empty:
            raise UsageError(
                f"{name_places(empty)} without a word; leave out such texts (`unrolled predict` leaves their rows "
                "blank)"
            )
        if not words:
            raise UsageError("there are no texts; expected at least one")
        return self.outputs_of(words)

    @torch.no_grad()
    def outputs_of(self, words: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Run the model on texts as words, none of them empty; shape (texts, outputs)."""
        task = self.text_task()
        encoded = EncodedTexts.encode(words, [0] * len(words), task.vocabulary)
        found = np.empty((len(words), len(task.outputs)))
        with evaluation_mode(self.model):
            for which in bounded_plan(encoded, task.evaluation_batch, MAX_TOKENS):
                batch = encoded.select(which)
                found[which.numpy()] = self.model(batch.tokens, batch.lengths).double().numpy()
        return found
