"""Kinds of corpora, their examples, and the base class of datasets.

A corpus has three splits. A task trains on one kind of corpus, and a dataset or a file format returns one kind. Most
splits are tuples of examples. The text of a language model may be larger than memory, so its splits are streams.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

from unrolled.errors import UsageError

__all__ = [
    "END_OF_LINE",
    "Brackets",
    "Candidate",
    "Characters",
    "Classification",
    "Corpus",
    "Dataset",
    "Example",
    "Examples",
    "Language",
    "Question",
    "RatedText",
    "Regression",
    "Relations",
    "Selection",
    "SentencePair",
    "Stream",
    "TaggedSentence",
    "Tagging",
    "Translation",
    "Words",
    "hold_out",
]


END_OF_LINE = "<eos>"
"""The token at the end of a line of words; a line of characters ends with ``\\n``."""

S_co = TypeVar("S_co", covariant=True)
E = TypeVar("E")


@dataclass(frozen=True, kw_only=True)
class Corpus(Generic[S_co]):
    """Three splits: ``dev`` chooses the best epoch, ``test`` is read once, after the training."""

    name: str
    train: S_co
    dev: S_co
    test: S_co
    notes: tuple[Any, ...] = field(default=(), compare=False)
    """What was chosen or left out while the corpus was read, one line of text each."""
    columns: tuple[Any, ...] = field(default=(), compare=False)
    """The columns of tables that the texts and the labels were read from, as a line of text."""

    @property
    def splits(self) -> dict[str, S_co]:
        """The splits by their names, in the order train, dev, test."""
        return {"train": self.train, "dev": self.dev, "test": self.test}

    def map_splits(self, change: Callable[[S_co], Any]) -> Self:
        """Return the corpus with each split changed."""
        return replace(self, **{name: change(split) for name, split in self.splits.items()})


@dataclass(frozen=True, kw_only=True)
class Examples(Corpus[tuple[E, ...]]):
    """Three splits of independent examples, held in memory."""

    def sample(self, count: int, seed: int = 0) -> Self:
        """Return a corpus with ``count`` training examples, drawn at random; dev and test stay whole.

        If there are fewer examples, all of them are kept. UsageError if ``count`` is not positive.
        """
        if count < 1:
            raise UsageError(f"{count} training examples were asked for; expected 1 or more")
        chosen = random.Random(seed).sample(self.train, min(count, len(self.train)))  # noqa: S311  # no secret
        return replace(self, train=tuple(chosen))


@dataclass(frozen=True, slots=True)
class Example:
    """A text and the index of its class in the corpus's ``labels``."""

    tokens: tuple[str, ...]
    label: int
    text: str = field(default="", compare=False)
    """The text as its file has it, where that is known."""
    origin: tuple[str, int] | None = field(default=None, compare=False)
    """Its file, and the line at which it begins, counted from 1; None if it is of no file."""


@dataclass(frozen=True, kw_only=True)
class Classification(Examples[Example]):
    """Texts, each with one class; ``labels`` are the names of the classes, in the order of their indices."""

    labels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Relations(Classification):
    """Texts in which the tokens ``<e1>``, ``</e1>``, ``<e2>`` and ``</e2>`` mark two entities.

    The class is the relation between them. A relation whose name ends in ``(e1,e2)`` or ``(e2,e1)`` has a direction.
    """


@dataclass(frozen=True, slots=True)
class RatedText:
    """A text and a number."""

    tokens: tuple[str, ...]
    rating: float
    text: str = field(default="", compare=False)
    """The text as its file has it, where that is known."""
    origin: tuple[str, int] | None = field(default=None, compare=False)
    """Its file, and the line at which it begins, counted from 1; None if it is of no file."""


@dataclass(frozen=True, kw_only=True)
class Regression(Examples[RatedText]):
    """Texts, each with a number to predict."""


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """A sentence and a tag for each of its tokens; spans are spelled in the scheme IOBES."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Tagging(Examples[TaggedSentence]):
    """Tagged sentences."""

    spans: bool
    """Whether the tags spell spans (the metric is F1), or stand for themselves (the metric is accuracy)."""


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A sentence and its translation."""

    source: tuple[str, ...]
    target: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Translation(Examples[SentencePair]):
    """Sentences and their translations."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may answer a question."""

    tokens: tuple[str, ...]
    right: bool


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the candidate sentences."""

    tokens: tuple[str, ...]
    candidates: tuple[Candidate, ...]

    @property
    def answered(self) -> bool:
        """Whether a candidate is right. MRR and MAP are defined for these questions only."""
        return any(candidate.right for candidate in self.candidates)


@dataclass(frozen=True, kw_only=True)
class Selection(Examples[Question]):
    """Questions, each with candidate sentences: answer selection."""


@dataclass(frozen=True, kw_only=True)
class Brackets(Examples[tuple[int, ...]]):
    """Strings of k kinds of brackets: 0 … k-1 open, k … 2k-1 close the same kind. No symbol marks a string's end."""

    kinds: int
    depth: int
    """The maximal number of open brackets."""


@dataclass(frozen=True)
class Stream:
    """A text that may be larger than memory. ``lines`` is called for each pass and yields the tokens of each line."""

    lines: Callable[[], Iterator[Sequence[str]]]

    def __iter__(self) -> Iterator[Sequence[str]]:
        return self.lines()


@dataclass(frozen=True, kw_only=True)
class Language(Corpus[Stream]):
    """Running text for a language model."""

    unit: Literal["word", "character"]


@dataclass(frozen=True, kw_only=True)
class Words(Language):
    """Running text whose tokens are words."""

    unit: Literal["word", "character"] = field(default="word", init=False)


@dataclass(frozen=True, kw_only=True)
class Characters(Language):
    """Running text whose tokens are characters."""

    unit: Literal["word", "character"] = field(default="character", init=False)


class Dataset(ABC):
    """A dataset with a name. Every module of ``unrolled.lab.data.datasets`` defines one or a family of them."""

    name: ClassVar[str]
    kind: ClassVar[type[Corpus[object]]]
    description: ClassVar[str]
    """One line for a list of datasets."""
    licence: ClassVar[str]
    """Its licence, or what is known of the terms of use."""
    citation: ClassVar[str]

    @abstractmethod
    def read(self, folder: Path | None = None) -> Corpus[object]:
        """Read or generate the corpus, of the class ``kind``.

        Args:
            folder: The data folder, which contains the folders of the datasets; the environment variable
                ``UNROLLED_DATA`` if None. A generated dataset ignores it.
        """


T = TypeVar("T")


def hold_out(
    examples: Sequence[T], count: int, labels: Callable[[T], Iterable[Hashable]], *, seed: int = 0
) -> tuple[list[T], list[T]]:
    """Split examples at random into those that remain and ``count`` that are held out; both keep their order.

    The same seed gives the same split on every machine. The last example with a label always remains, so fewer than
    ``count`` examples may be held out.

    Example:
        >>> remaining, held_out = hold_out(["a", "b", "b", "b"], 2, lambda example: example)
        >>> sorted(remaining), held_out
        (['a', 'b'], ['b', 'b'])
    """
    generator = random.Random(seed)  # noqa: S311  # no secret
    # Python guarantees the same sequence in every version for random() only.
    keys = [generator.random() for _ in examples]
    remaining = Counter(label for example in examples for label in set(labels(example)))
    held_out: set[int] = set()
    for index in sorted(range(len(examples)), key=keys.__getitem__):
        if len(held_out) == count:
            break
        own = set(labels(examples[index]))
        if all(remaining[label] > 1 for label in own):
            remaining.subtract(own)
            held_out.add(index)
    return (
        [example for index, example in enumerate(examples) if index not in held_out],
        [example for index, example in enumerate(examples) if index in held_out],
    )
