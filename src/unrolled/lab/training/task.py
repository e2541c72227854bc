"""The interface of a task: what the training engine needs to get from a corpus to a model, its loss and its metrics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Corpus
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.models.settings import EncoderSettings

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from unrolled.lab.data.batches.base import Batch

__all__ = ["HiddenState", "Loss", "Metric", "PreparedText", "Split", "Task"]

HiddenState = tuple["Tensor", ...]
"""What a model carries from one batch to the next; empty if batches are independent."""

B = TypeVar("B", bound="Batch")
B_co = TypeVar("B_co", bound="Batch", covariant=True)
C = TypeVar("C", bound=Corpus[Any])


@dataclass(frozen=True)
class Loss:
    """The loss of a batch."""

    total: Tensor
    """Sum over predictions, a scalar; in nats if it is a cross-entropy."""
    count: int
    """Number of predictions; the training objective is total/count."""
    state: HiddenState = ()
    """Hidden state for the next batch, detached from the graph."""


@dataclass(frozen=True)
class Metric:
    """A number by which a model is evaluated."""

    name: str
    description: str
    """One line that defines it."""
    higher_is_better: bool = True
    unit: Literal["share", "nats", "bits", ""] = "share"
    requires: Callable[[], object] | None = None
    """Imports the package that computes it; a UsageError names the extra to install."""

    def format(self, value: float) -> str:
        """Format a value: a share in per cent, anything else with four decimals, or four digits, and its unit."""
        if self.unit == "share":
            return f"{value:.2%}"
        usual = not value or 0.001 <= abs(value) < 1e6
        return f"{value:{'.4f' if usual else '.4g'}} {self.unit}".rstrip()


@dataclass(frozen=True)
class PreparedText:
    """A text prepared as the input of a trained model, so that ``explain`` can open the model."""

    model: nn.Module
    """Maps the inputs to shape (1, outputs)."""
    inputs: tuple[Tensor, ...]
    """Each with one row."""
    tokens: tuple[str, ...]
    """The tokens that the recurrent network reads."""
    outputs: tuple[str, ...]
    """Names of the outputs."""
    unknown: tuple[str, ...] = ()
    """The tokens that are not in the vocabulary."""
    rnn: str | None = None
    """Path of the recurrent network to open, if the model has several."""


class Split(Protocol[B_co]):
    """One encoded split of a corpus.

    :meth:`plan` draws the order of a whole epoch at once, so that a training can stop and resume within an epoch.
    """

    def __len__(self) -> int:
        """Return the number of examples; for running text, of tokens."""

    def plan(self, size: int, generator: torch.Generator | None = None) -> Sequence[Tensor]:
        """Divide the split into batches of at most ``size`` examples, each example in exactly one.

        Args:
            size: Batch size.
            generator: Draws the order; without one the order is always the same.

        Returns:
            For each batch, in training order, what :meth:`select` takes.
        """

    def select(self, which: Tensor) -> B_co:
        """Build the batch of an entry of a plan. This must not draw random numbers: batches are built ahead."""


class Task(ABC, Generic[C, B]):
    """Something a model is trained for; each task is a file in ``unrolled.lab.tasks``.

    An instance holds the vocabulary and the labels of its corpus: with the weights, all that a trained model needs.
    """

    name: ClassVar[str]
    """As in ``unrolled train NAME``."""
    description: ClassVar[str]
    """One line for the help of the command line."""
    kind: ClassVar[type[Corpus[Any]]]
    """The class of corpus it trains on."""
    Architecture: ClassVar[type[EncoderSettings]]
    """The class of its model's settings."""
    training_defaults: ClassVar[Mapping[str, Any]] = {}
    """The training settings whose defaults differ from :class:`TrainingSettings`."""
    metrics: tuple[Metric, ...]
    """The first one, on dev, chooses the best epoch. A corpus may lack some."""
    evaluation_batch: ClassVar[int] = 256
    """Largest batch size in evaluation."""

    def __init__(self, architecture: EncoderSettings) -> None:
        self.architecture = architecture

    @classmethod
    @abstractmethod
    def from_corpus(cls, corpus: C, architecture: Any) -> Self:
        """Make the task for a corpus: collect words and labels of the training split, and of no other split."""

    @abstractmethod
    def to_record(self) -> Mapping[str, Any]:
        """Return everything but the architecture that makes this task again, as a JSON object."""

    @classmethod
    @abstractmethod
    def from_record(cls, record: Mapping[str, Any], architecture: Any) -> Self:
        """Make the task of what :meth:`to_record` returned; the file it was read from may have been edited.

        Raises:
            DataError: If a field is missing or wrong.
        """

    @abstractmethod
    def build(self) -> nn.Module:
        """Build the untrained model, in training mode; torch's global generator draws the weights."""

    @abstractmethod
    def encode(self, examples: Any) -> Split[B]:
        """Encode one split of a corpus as numbers.

        Raises:
            DataError: If the split is empty, or the task cannot train on it.
        """

    @abstractmethod
    def loss(self, model: nn.Module, batch: B, state: HiddenState) -> Loss:
        """Compute the loss of a batch, in the model's current mode.

        Args:
            model: A model of :meth:`build`.
            batch: A batch of an encoded split.
            state: What the batch before returned; empty at the start of an epoch.

        Returns:
            The loss, ready for ``backward``.
        """

    @abstractmethod
    def compute_metrics(self, model: nn.Module, batches: Iterable[B]) -> dict[str, float]:
        """Evaluate a model; called in evaluation mode, without gradients.

        Args:
            model: A model of :meth:`build`.
            batches: A whole split, in the order of its plan without a generator.

        Returns:
            A number for each of ``metrics``, by name.
        """

    @property
    def loss_name(self) -> str:
        """What the mean loss of an epoch is called beside the metrics on dev; it says where its unit is another."""
        return "train loss"

    def evaluation_rows(self, split: Split[B]) -> int:
        """Return the batch size in the evaluation of a split."""
        return self.evaluation_batch

    def embeddings(self, model: nn.Module) -> tuple[tuple[Vocabulary, nn.Embedding], ...]:
        """Return the word embeddings, each with its vocabulary; a file of word vectors may initialise them."""
        return ()

    @property
    def classes(self) -> tuple[str, ...]:
        """The possible labels of an example, by index; empty if labels are not a fixed set."""
        return ()

    @property
    def known_labels(self) -> tuple[str, ...]:
        """The labels that examples of other files may have, as their format tells them; empty for any."""
        return self.classes

    def details(self, model: nn.Module, batches: Iterable[B]) -> tuple[str, ...]:
        """Return lines of text about a model beyond its metrics; called as :meth:`compute_metrics` is."""
        return ()

    def doubts(self, examples: Any) -> tuple[str, ...]:
        """Return lines on why examples to evaluate on may not be what the model was trained for."""
        return ()

    def check_no_position(self, at: int | None) -> None:
        """Refuse a position, if the model has one output for a whole text."""
        if at is not None:
            raise UsageError(f"at is {at}, but the task {self.name} has one output for a whole text; leave it out")

    def prepare(self, model: nn.Module, text: str, at: int | None = None) -> PreparedText:
        """Prepare a text as the input of a trained model, so that its output can be explained.

        Args:
            model: A model of :meth:`build`.
            text: Text as people type it.
            at: The position to explain, for a model with an output for every token; the last by default.

        Returns:
            The model's inputs, its tokens, and the names of its outputs.

        Raises:
            UsageError: If the text is empty, the position is not in it, or the task's models cannot be opened.
        """
        raise UsageError(f"a run of the task {self.name} cannot explain a text; give a run of another task")
