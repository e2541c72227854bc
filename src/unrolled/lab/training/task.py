"""What a task is, as the training engine sees it: from a corpus to a model, its loss and its metrics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from unrolled.errors import UsageError
from unrolled.lab.data.batches.base import Batch
from unrolled.lab.data.corpus import Corpus
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.models.factory import EncoderSettings

__all__ = ["HiddenState", "Loss", "Metric", "PreparedText", "Split", "Task"]

HiddenState = tuple[Tensor, ...]
"""What a model carries from one batch to the next; empty when batches do not depend on each other."""

B = TypeVar("B", bound=Batch)
B_co = TypeVar("B_co", bound=Batch, covariant=True)
C = TypeVar("C", bound=Corpus[Any])


@dataclass(frozen=True)
class Loss:
    """What a batch costs."""

    total: Tensor
    """Summed over predictions, a scalar; in nats where it is a cross-entropy."""
    count: int
    """How many predictions there are; the engine learns from total/count."""
    state: HiddenState = ()
    """What the next batch begins with, cut off from the graph."""


@dataclass(frozen=True)
class Metric:
    """One number by which a model is judged."""

    name: str
    description: str
    """In one line what is counted, and how."""
    higher_is_better: bool = True
    """Whether more is better."""
    unit: Literal["share", "nats", "bits", ""] = "share"
    requires: Callable[[], object] | None = None
    """Loads the package that computes it; a UsageError, which names the extra, when that is not installed."""

    def format(self, value: float) -> str:
        """Write a value for people."""
        return f"{value:.2%}" if self.unit == "share" else f"{value:.4f} {self.unit}".rstrip()


@dataclass(frozen=True)
class PreparedText:
    """A text as a trained model reads it."""

    model: nn.Module
    """Called with the inputs, gives shape (1, outputs)."""
    inputs: tuple[Tensor, ...]
    """Each with one row."""
    tokens: tuple[str, ...]
    """The words that the recurrent network reads."""
    outputs: tuple[str, ...]
    """What the outputs are called."""
    unknown: tuple[str, ...] = ()
    """The tokens that are not in the vocabulary."""
    rnn: str | None = None
    """Which recurrent network is opened, where there are several."""


class Split(Protocol[B_co]):
    """One split of a corpus in numbers, which can be cut into batches.

    The order of an epoch is drawn by :meth:`plan` at once, so that training can stop anywhere and go on there.
    """

    def __len__(self) -> int:
        """How many examples there are; for running text, how many tokens."""

    def plan(self, size: int, generator: torch.Generator | None = None) -> Sequence[Tensor]:
        """Share the split out into batches, every example in exactly one.

        Args:
            size: how many examples a batch holds at most.
            generator: draws the order; without one the order is the same each time.

        Returns:
            What :meth:`select` takes, for each batch, in the order in which they are to be learned.
        """

    def select(self, which: Tensor) -> B_co:
        """Lay some examples side by side; nothing is drawn, since some batches are put together ahead of their steps.

        Args:
            which: an entry of a plan.

        Returns:
            The batch.
        """


class Task(ABC, Generic[C, B]):
    """Something to be learned; each task is a file in ``unrolled.lab.tasks``.

    An instance knows the vocabularies and labels of the corpus it was made for: all that is needed, beside the
    weights, to use a trained model.

    Args:
        architecture: what the model is made of, as the user chose.
    """

    name: ClassVar[str]
    """As in ``unrolled train NAME``."""
    description: ClassVar[str]
    """One line for the command line's help."""
    kind: ClassVar[type[Corpus[Any]]]
    """The kind of corpus that is learned."""
    Architecture: ClassVar[type[EncoderSettings]]
    """The settings of its model."""
    training_defaults: ClassVar[Mapping[str, Any]] = {}
    """The training settings whose defaults are this task's own."""
    metrics: tuple[Metric, ...]
    """What it is judged by; the first, on dev, chooses the best epoch. A corpus may leave some out."""
    evaluation_batch: ClassVar[int] = 256
    """How many examples are judged at a time."""

    def __init__(self, architecture: EncoderSettings) -> None:
        self.architecture = architecture

    @classmethod
    @abstractmethod
    def from_corpus(cls, corpus: C, architecture: Any) -> Self:
        """Gather what the training split has: words, labels.

        Args:
            corpus: of the task's kind; dev and test are not looked at.
            architecture: an instance of ``Architecture``.

        Returns:
            The task.
        """

    @abstractmethod
    def to_record(self) -> Mapping[str, Any]:
        """Give all that is needed to make this task again, beside its architecture.

        Returns:
            JSON's types alone; :meth:`from_record` takes them back.
        """

    @classmethod
    @abstractmethod
    def from_record(cls, fields: Mapping[str, Any], architecture: Any) -> Self:
        """Make a task again.

        Args:
            fields: what :meth:`fields` gave, read from a file that may have been touched since.
            architecture: an instance of ``Architecture``.

        Returns:
            The task.

        Raises:
            DataError: when a field is missing or not what it should be.
        """

    @abstractmethod
    def build(self) -> nn.Module:
        """Build the model; its weights come from torch's global generator.

        Returns:
            The model, untrained, in training mode.
        """

    @abstractmethod
    def encode(self, examples: Any) -> Split[B]:
        """Turn one split of a corpus into numbers.

        Args:
            examples: the split.

        Returns:
            The same, ready to be cut into batches.

        Raises:
            DataError: when it is empty, or holds what the task cannot learn from.
        """

    @abstractmethod
    def loss(self, model: nn.Module, batch: B, state: HiddenState) -> Loss:
        """Compute what a batch costs, in the mode that the model is in.

        Args:
            model: one that :meth:`build` made.
            batch: some examples.
            state: what the batch before left; empty at the beginning of an epoch.

        Returns:
            The loss, ready for ``backward``.
        """

    @abstractmethod
    def compute_metrics(self, model: nn.Module, batches: Iterable[B]) -> dict[str, float]:
        """Judge a model; called in eval mode, without gradients.

        Args:
            model: one that :meth:`build` made.
            batches: a whole split, in the order of its plan without a generator.

        Returns:
            A number for each of ``measures``, by its name.
        """

    def embeddings(self, model: nn.Module) -> tuple[tuple[Vocabulary, nn.Embedding], ...]:  # none
        """Name the word embeddings, which may begin as vectors from a file.

        Args:
            model: one that :meth:`build` made.

        Returns:
            Each with its vocabulary; none unless a task says so.
        """
        return ()

    @property
    def classes(self) -> tuple[str, ...]:
        """What a label of an example may be, in the order of their numbers; nothing where any may come."""
        return ()

    def details(self, model: nn.Module, batches: Iterable[B]) -> tuple[str, ...]:  # most tasks have none
        """Say more of how good a model is than the measures do; called in eval mode, without gradients.

        Args:
            model: one that :meth:`build` made.
            batches: a whole split, in the order of its plan without a generator.

        Returns:
            Lines for people; none unless a task says so.
        """
        return ()

    def prepare(self, model: nn.Module, text: str, at: int | None = None) -> PreparedText:  # not every task
        """Put a text before a trained model, so that what it says of it can be explained.

        Args:
            model: one that :meth:`build` made.
            text: as a person types it.
            at: a position, for a model that says something of every token; the last when left out.

        Returns:
            The model's inputs, and what it reads and says in words.

        Raises:
            UsageError: when the text is empty, the position is not in it, or the task's models are not opened.
        """
        raise UsageError(f"a run of the task {self.name} is not opened by a text; expected a run of another task")
