"""What a fitted estimator says of its outputs: an explanation of one example, or of several at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from unrolled.errors import ShapeError, UsageError, kind_of
from unrolled.lab.data.batches.base import length_buckets
from unrolled.lab.data.text_lists import check_strings, shown_kind
from unrolled.lab.data.vocabulary import UNKNOWN_WORD
from unrolled.lab.estimators.fitting import on_cpu
from unrolled.lab.estimators.frame_names import check_columns, shown_names
from unrolled.lab.estimators.inputs import (
    check_container,
    checked_rows,
    is_text,
    numeric_sequences,
    out_of_libraries,
    padded,
    refuse_other_than_texts,
    with_features,
)
from unrolled.lab.estimators.shown_numbers import with_values, with_values_of_row
from unrolled.lab.estimators.verbose_lines import verbose_lines
from unrolled.report.unknown_words import mark_unknown, note_unknown

if TYPE_CHECKING:
    from torch import nn

    from unrolled.explanation.explanation import Explanation
    from unrolled.explanation.explanations import Explanations
    from unrolled.lab.estimators.model import SequenceModel
    from unrolled.lab.estimators.words import LearnedWords

__all__ = ["ExplainsExamples"]

_TOGETHER, _PAIRS = 32, 2**20
"""The most examples of one call, and the most pairs of their tokens: each has a number for every n-gram."""

_Words = Sequence[tuple[str, ...]]


class ExplainsExamples(BaseEstimator):
    """An estimator whose outputs are explained."""

    words_: LearnedWords | None
    rows_: bool
    n_features_in_: int
    model_: nn.Module
    verbose: bool | int = False  # also of an estimator that an earlier version pickled, without one

    @on_cpu()
    def explain(self, x: Any, target: Any = None, against: Any = None, **options: Any) -> Explanation:
        """Explain the output for one text or one sequence.

        The contribution of a number is that of its distance from the mean of the training sequences.

        Args:
            x: A text, or numbers of shape (time, features) or (time,).
            target: A class; None for the predicted one.
            against: A class whose output is subtracted: why the target rather than this one?
            **options: Other options of :func:`unrolled.explain`, such as ``features``, the names of the numbers of a
                step, and ``tokens``, those of the steps; by default the columns of the training's data frames.
        """
        check_is_fitted(self, "model_")
        if self.words_ is not None and (x is None or isinstance(x, float)):
            raise UsageError(f"the text is {shown_kind(x)}; expected a string")
        if isinstance(x, str) != (self.words_ is not None):
            given, learned = ("a text", "numbers") if isinstance(x, str) else (f"{kind_of(x)}", "texts")
            several = "" if isinstance(x, str) else "; several texts are for explain_batch"
            raise UsageError(f"the example is {given}, but the estimator was fitted on {learned}{several}")
        if options.get("tokens") is not None:
            options["tokens"] = [options["tokens"]]
        if self.words_ is not None:
            words, indices = self.words_.split(x)
            return self._explained([indices], [words], target, against, options)[0]
        x = out_of_libraries(x)
        check_columns(self, [x], rows=self.rows_)
        fitted = "(time,)" if self.rows_ else "(time, features)"
        try:
            shape = np.shape(x)
        except ValueError:  # in numpy's words about arrays of arrays
            raise ShapeError(
                f"the example is a {type(x).__name__} of rows of different lengths; expected one example, of shape "
                f"{fitted}: several are for explain_batch"
            ) from None
        if len(shape) > (1 if self.rows_ else 2) and shape[1:] != (1,):
            raise ShapeError(
                f"the example has shape {shape}; expected one example, of shape {fitted}: several are for explain_batch"
            )
        features = 1 if self.rows_ else self.n_features_in_
        sequences = with_features(numeric_sequences([x]), features, type(self).__name__)
        return self._explained(sequences, None, target, against, options)[0]

    @on_cpu()
    def explain_batch(self, X: Any, target: Any = None, against: Any = None, **options: Any) -> Explanations:
        """Explain the output for several texts or sequences, each as :meth:`explain` does.

        Examples of similar lengths are opened together. ``verbose`` has a line a minute printed. With a ``target``, the
        result's ``phrases()`` says what the phrases of all texts speak for.

        Args:
            X: Examples, as ``predict`` takes them.
            target: A class for all of them; None for the predicted one of each.
            against: A class whose output is subtracted.
            **options: Other options of :func:`unrolled.explain_batch`; ``tokens`` has a list for each example.

        Returns:
            One explanation for each example, in their order.
        """
        sequences, words = self._read(X)
        return self._explained(sequences, words, target, against, options)

    def _place(self, given: Any) -> int | None:
        """Return the index of a class's output."""
        raise NotImplementedError

    def _read(self, X: Any) -> tuple[list[NDArray[Any]], _Words | None]:
        """Check examples that the estimator was not fitted on; return them as arrays, and the words of texts."""
        check_is_fitted(self, "model_")
        check_container(X)
        X = out_of_libraries(X)
        text = is_text(X)
        if text and self.words_ is None:
            raise UsageError("the examples are texts, but the estimator was fitted on numbers")
        if self.words_ is not None:
            if not text:
                refuse_other_than_texts(X)
            check_strings(X)
            split = [self.words_.split(each) for each in X]
            return [indices for _, indices in split], [words for words, _ in split]
        if not self.rows_:
            if len(getattr(X, "shape", ())) == 2 and (hasattr(X, "columns") or self.n_features_in_ > 1):
                raise ShapeError(
                    f"the examples are one table of shape {X.shape}; pass a list of one sequence: [sequence]"
                )
            check_columns(self, X, rows=False)
            return with_features(numeric_sequences(X), self.n_features_in_, type(self).__name__), None
        return list(checked_rows(self, X, fitted=True)), None

    def _explained(
        self,
        sequences: Sequence[NDArray[Any]],
        words: _Words | None,
        target: Any,
        against: Any,
        options: dict[str, Any],
    ) -> Explanations:
        """Explain examples, those of similar lengths in one call."""
        from unrolled.explanation.api import explain_batch
        from unrolled.explanation.explanations import Explanations

        classes = [str(each) for each in getattr(self, "classes_", ())]
        options = {"classes": classes or None} | options
        options |= {"target": self._place(target), "against": self._place(against)}
        tokens, count = options.pop("tokens", None), len(sequences)
        if words is not None and tokens is None:
            tokens = [mark_unknown(each, self._unknown(each)) for each in words]
        elif words is None:
            names = shown_names(self, rows=self.rows_)
            tokens = [names["tokens"]] * count if tokens is None and "tokens" in names else tokens
            options = {name: each for name, each in names.items() if name != "tokens"} | options
        if tokens is not None and len(tokens) != count:
            raise ShapeError(f"tokens has {len(tokens)} lists for {count} examples; expected one for each")
        model = cast("SequenceModel", self.model_)
        found: dict[int, Explanation] = {}
        lines = verbose_lines(self.verbose)
        for places in _together([len(each) for each in sequences]):
            batch = padded([sequences[k] for k in places], torch.int64 if words is not None else torch.float64)
            given = {"tokens": None if tokens is None else [list(tokens[k]) for k in places], **options}
            if words is not None:
                each = explain_batch(model, batch.values, batch.lengths, **given)
            else:
                each = explain_batch(model.behind_reader(), model.reader(batch.values), batch.lengths, **given)
            found |= dict(zip(places, each, strict=True))
            lines.say_if_due(f"explained {len(found):,} of {count:,} examples")
        split = [None] * count if words is None else words
        return Explanations(tuple(self._shown(found[k], sequences[k], split[k]) for k in range(count)))

    def _unknown(self, words: Sequence[str]) -> tuple[str, ...]:
        return () if self.words_ is None else self.words_.unknown(words)

    def _shown(self, found: Explanation, sequence: NDArray[Any], words: tuple[str, ...] | None) -> Explanation:
        """Show numbers as they were given, and note words that no training text holds."""
        if words is None:
            values = torch.tensor(sequence)  # a copy: an array may be read-only
            return with_values_of_row(found, values) if self.rows_ else with_values(found, values)
        return replace(found, notes=(*found.notes, *note_unknown(self._unknown(words), UNKNOWN_WORD)))


def _together(lengths: Sequence[int]) -> list[list[int]]:
    """Return the places of the examples of each call."""
    calls = []
    for bucket in length_buckets(torch.tensor(lengths), _TOGETHER):
        longest = max(lengths[k] for k in bucket.tolist())
        calls += [part.tolist() for part in bucket.split(max(1, _PAIRS // longest**2))]
    return calls
