"""The estimators: a recurrent classifier and a recurrent regressor of texts or of sequences of numbers."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from itertools import compress
from threading import RLock
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_random_state, column_or_1d
from torch import nn
from torch.nn import functional as F

from unrolled.errors import UsageError
from unrolled.lab.data.text_lists import check_strings
from unrolled.lab.estimators.answers import (
    as_numbers,
    class_place,
    learn_classes,
    listed_answers,
    refuse_mixed,
    refuse_swapped,
)
from unrolled.lab.estimators.explained import ExplainsExamples
from unrolled.lab.estimators.fitting import FittedAnswers, Fitting, checked_weights, on_cpu, outputs_of, train, weighted
from unrolled.lab.estimators.frame_names import learn_columns
from unrolled.lab.estimators.inputs import (
    check_container,
    checked_rows,
    is_nested,
    is_text,
    numeric_sequences,
    out_of_libraries,
)
from unrolled.lab.estimators.model import Scale, SequenceModel
from unrolled.lab.estimators.words import LearnedWords
from unrolled.lab.models.settings import PooledSettings
from unrolled.lab.training.rng_state import seeded

__all__ = ["RecurrentClassifier", "RecurrentRegressor"]

_DRAWING = RLock()
"""Torch's generators of random numbers belong to the process: one thread at a time draws from them."""


class _Recurrent(ExplainsExamples):
    """What both estimators share."""

    def __init__(
        self,
        encoder: str = "gru",
        *,
        hidden: int = 32,
        embedding: int = 32,
        layers: int = 1,
        bidirectional: bool = False,
        pooling: str = "last",
        dropout: float = 0.0,
        epochs: int = 30,
        lr: float = 0.01,
        batch: int = 32,
        weight_decay: float = 0.0,
        clip: float = 5.0,
        tokenizer: Any = None,
        min_count: int = 1,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.encoder = encoder
        self.hidden = hidden
        self.embedding = embedding
        self.layers = layers
        self.bidirectional = bidirectional
        self.pooling = pooling
        self.dropout = dropout
        self.epochs = epochs
        self.lr = lr
        self.batch = batch
        self.weight_decay = weight_decay
        self.clip = clip
        self.tokenizer = tokenizer
        self.min_count = min_count
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.three_d_array = True
        tags.non_deterministic = self.random_state is None
        return tags

    def _read_training(self, X: Any, y: Any, sample_weight: Any) -> tuple[list[NDArray[Any]], Any]:
        """Check the examples and the answers, and learn the words or the scale of the numbers."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None; pass answers")
        check_container(X)
        X, y = out_of_libraries(X), listed_answers(y)
        self.__dict__.pop("model_", None)  # a training that fails leaves no model of other words or columns
        self.words_ = None
        text, nested = is_text(X), is_nested(X)
        self.rows_ = not (text or nested)
        learn_columns(self, X if nested else None)
        if text:
            texts = list(X)
            check_strings(texts)
            counted = checked_weights(sample_weight, texts) > 0  # no other text teaches a word
            self.words_ = LearnedWords.learn(list(compress(texts, counted)), self.tokenizer, self.min_count)
            sequences: list[NDArray[Any]] = [self.words_.split(text)[1] for text in texts]
            self.n_features_in_ = 1
        elif nested:
            sequences = list(numeric_sequences(X))
            self.n_features_in_ = sequences[0].shape[1]
        else:
            sequences = list(checked_rows(self, X, fitted=False))
        y = column_or_1d(y, warn=True)
        if len(y) != len(sequences):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(sequences), len(y)]}")
        return sequences, y

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        sequences, _ = self._read(X)  # which also tells whether there is a model
        return outputs_of(self.model_, sequences)

    def _fit(self, sequences: list[NDArray[Any]], answers: FittedAnswers) -> None:
        settings = PooledSettings(
            encoder=self.encoder,
            hidden=self.hidden,
            embedding=self.embedding,
            layers=self.layers,
            bidirectional=self.bidirectional,
            pooling=self.pooling,
            dropout=self.dropout,
        )
        fitting = Fitting(self.epochs, self.lr, self.batch, self.weight_decay, self.clip, self.verbose)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        words = 0 if self.words_ is None else len(self.words_)
        with ExitStack() as drawing:
            drawing.enter_context(_DRAWING)
            drawing.enter_context(seeded(seed))
            model = SequenceModel(settings, words, sequences[0].shape[-1] if not words else 0, answers.outputs)
            learner = model
            if isinstance(model.reader, Scale):
                model.reader.fit(np.concatenate(sequences))
                sequences, learner = [model.reader.standardise(one) for one in sequences], model.behind_reader()
            self._start(model)
            if not self.dropout:  # the training draws nothing more
                drawing.close()
            self.losses_ = train(learner, sequences, answers, fitting, seed)
        self.model_: nn.Module = model.double().eval()
        """In float64, so that a prediction does not depend on the examples beside it."""

    def _start(self, model: SequenceModel) -> None:
        """Set the first values of the head."""


class RecurrentClassifier(ClassifierMixin, _Recurrent):
    """Classify texts or sequences of numbers by a recurrent network.

    ``fit`` takes a list of texts; an array of shape (examples, time, features); a list of arrays or data frames
    (time, features) of any lengths; or, for series of one feature, an array of shape (examples, time) or a list of
    arrays (time,) of several lengths. A list may be an array of objects, or a series of pandas. Numbers are
    standardised by the training sequences. ``model_`` is an ordinary module that :func:`unrolled.explain` accepts.
    ``joblib`` stores an estimator as a pickle: load only files of people you trust, or keep
    ``model_.state_dict()`` in a safetensors file.

    Args:
        encoder: rnn, gru, lstm or any cell of the library.
        hidden: Size of the state in each direction.
        embedding: Size of the word vectors; for texts.
        layers: Number of layers.
        bidirectional: Read in both directions.
        pooling: last, ends, mean, max or attention. ``last`` reads the state after the last step, which forgets early
            steps: of 100 random numbers, 200 series teach it the mean of the last 50 (R² 0.9 on new series), not that
            of the first 50 (below 0). ``mean`` and ``attention`` learn the first 50 (0.8), and the last less well.
        dropout: Dropout probability in training.
        epochs: Number of passes over the examples.
        lr: Learning rate of Adam.
        batch: Examples in a batch.
        weight_decay: L2 penalty of the weights.
        clip: Largest norm of a gradient; 0 for no limit.
        tokenizer: How texts are split: None as the treebanks do, a function from a text to its words, the path of a
            ``tokenizer.json`` of Hugging Face, or a tokenizer object with ``encode``. A pickle keeps a function by its
            name: of an estimator that is to be stored, it is one of a module, no lambda.
        min_count: How often a word must occur in training to be known.
        random_state: Seed of the weights, the order of the examples and the dropout.
        verbose: Whether ``fit`` prints a line for each epoch, and a line a minute within a long one; ``explain_batch``
            a line a minute. Silent by default, as scikit-learn's estimators are: a search fits many of them.

    Example:
        >>> from unrolled.sklearn import RecurrentClassifier
        >>> texts = ["a good film", "a bad film", "not a good film", "not a bad film"]
        >>> texts += ["a fine plot", "a dull plot", "not a fine plot", "not a dull plot"]
        >>> classifier = RecurrentClassifier("gru", random_state=0).fit(texts, ["+", "-", "-", "+"] * 2)
        >>> classifier.predict(["a good plot", "not a good plot"]).tolist()
        ['+', '-']
        >>> abs(classifier.explain("not a good plot").ledger.remainder) < 1e-6
        True
    """

    @on_cpu()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on examples ``X`` and their classes ``y``; the loss of each counts ``sample_weight`` times.

        An example of weight 0 is left out: it sets no scale of numbers, and its words alone are unknown.
        """
        refuse_mixed(y)
        sequences, y = self._read_training(X, y, sample_weight)
        if self.words_ is not None:
            refuse_swapped(list(X), y)
        self.classes_, indices = learn_classes(y)
        sequences, indices, weights = weighted(sample_weight, sequences, indices)
        targets, losses = torch.as_tensor(indices, dtype=torch.int64), partial(F.cross_entropy, reduction="none")
        self._fit(sequences, FittedAnswers(targets, len(self.classes_), losses, weights))
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of each class of ``classes_``, shape (examples, classes)."""
        return np.asarray(softmax(self._outputs(X), axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each example."""
        chosen = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of examples whose class is predicted."""
        return float(super().score(X, listed_answers(y), sample_weight))

    def _place(self, given: Any) -> int | None:
        return None if given is None else class_place(self.classes_, given)


class RecurrentRegressor(RegressorMixin, _Recurrent):
    """Predict a number for a text or a sequence of numbers by a recurrent network.

    Its arguments and its inputs are those of :class:`RecurrentClassifier`, which says what ``pooling`` suits a series.

    Example:
        >>> import numpy as np
        >>> from unrolled.sklearn import RecurrentRegressor
        >>> series = np.random.default_rng(0).normal(size=(200, 8, 3))  # examples, time, features
        >>> totals = series[:, :, 0].sum(axis=1)
        >>> regressor = RecurrentRegressor(epochs=30, random_state=0).fit(series, totals)
        >>> bool(regressor.score(series, totals) > 0.9)
        True
    """

    @on_cpu()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on examples ``X`` and their numbers ``y``; the loss of each counts ``sample_weight`` times.

        An example of weight 0 is left out: it sets no scale of numbers, and its words alone are unknown.
        """
        sequences, y = self._read_training(X, y, sample_weight)
        sequences, y, weights = weighted(sample_weight, sequences, as_numbers(y))
        spread = float(y.std())
        self.mean_, self.spread_ = float(y.mean()), spread if spread > 0 else 1.0
        targets = torch.as_tensor((y - self.mean_) / self.spread_, dtype=torch.get_default_dtype())
        self._fit(sequences, FittedAnswers(targets, 1, lambda outputs, wanted: (outputs[:, 0] - wanted) ** 2, weights))
        with torch.no_grad():  # the model's output is in the unit of y
            head = self.model_.head
            assert isinstance(head, nn.Linear)
            head.weight.mul_(self.spread_)
            head.bias.mul_(self.spread_).add_(self.mean_)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the number of each example."""
        return np.asarray(self._outputs(X)[:, 0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the variance of the numbers that is predicted, R²."""
        return float(super().score(X, listed_answers(y), sample_weight))

    def _place(self, given: Any) -> int | None:
        if given is not None:
            raise UsageError(f"the class {given!r} was given, but a regressor has one output; leave it out")
        return None
