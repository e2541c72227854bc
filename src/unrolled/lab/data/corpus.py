"""What there is to learn from: examples of one kind, three splits of them, and a source that reads them.

A task learns one kind of corpus, and a source gives one kind: that is how the two are matched. Most corpora are
tuples of examples. Text for a language model may be longer than memory; its splits are streams, read anew at
every pass.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Generic, Literal, Self, TypeVar

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
]

END_OF_LINE = "<eos>"
"""The token that ends a line of words; a line of characters ends with ``\\n``."""

S_co = TypeVar("S_co", covariant=True)
E = TypeVar("E")


@dataclass(frozen=True, kw_only=True)
class Corpus(Generic[S_co]):
    """Three splits."""

    name: str
    train: S_co
    dev: S_co
    """Chooses the best epoch; never trained on."""
    test: S_co
    """Looked at once, at the end."""


@dataclass(frozen=True, kw_only=True)
class Examples(Corpus[tuple[E, ...]]):
    """Three splits, small enough to hold, of examples that do not depend on each other."""

    def sample(self, count: int, seed: int = 0) -> Self:
        """Keep only some of the training examples, drawn at random; dev and test stay whole.

        Args:
            count: how many; all of them when there are no more.
            seed: which.

        Returns:
            The smaller corpus.

        Raises:
            UsageError: when ``count`` is not positive.
        """
        if count < 1:
            raise UsageError(f"{count} training examples were asked for; expected 1 or more")
        chosen = random.Random(seed).sample(self.train, min(count, len(self.train)))  # noqa: S311  # no secret
        return replace(self, train=tuple(chosen))


@dataclass(frozen=True, slots=True)
class Example:
    """One text and its class."""

    tokens: tuple[str, ...]
    label: int
    """An index into the corpus's ``labels``."""


@dataclass(frozen=True, kw_only=True)
class Classification(Examples[Example]):
    """Texts, each of one class."""

    labels: tuple[str, ...]
    """The classes' names, in the order of their indices."""


@dataclass(frozen=True, kw_only=True)
class Relations(Classification):
    """Texts in which two entities are marked, by the tokens ``<e1>``, ``</e1>``, ``<e2>`` and ``</e2>``.

    The class is the relation between them; a name that ends in ``(e1,e2)`` or ``(e2,e1)`` has a direction.
    """


@dataclass(frozen=True, slots=True)
class RatedText:
    """One text and a number."""

    tokens: tuple[str, ...]
    rating: float


@dataclass(frozen=True, kw_only=True)
class Regression(Examples[RatedText]):
    """Texts, each with a number to be predicted."""


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """One sentence and a tag for each of its tokens."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    """As many as tokens; spans of entities in the scheme IOBES."""


@dataclass(frozen=True, kw_only=True)
class Tagging(Examples[TaggedSentence]):
    """Sentences whose tokens have tags."""

    spans: bool
    """Whether the tags spell spans (IOBES), measured by F1, or stand for themselves, measured by accuracy."""


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A sentence and its translation."""

    source: tuple[str, ...]
    target: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Translation(Examples[SentencePair]):
    """Sentences of one language with those of another that say the same."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may answer a question."""

    tokens: tuple[str, ...]
    right: bool


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the sentences to choose from."""

    tokens: tuple[str, ...]
    candidates: tuple[Candidate, ...]

    @property
    def answered(self) -> bool:
        """Whether a candidate is right. MRR and MAP are taken over these questions alone: the others have no rank."""
        return any(candidate.right for candidate in self.candidates)


@dataclass(frozen=True, kw_only=True)
class Selection(Examples[Question]):
    """Questions, each with the candidates for its answer."""


@dataclass(frozen=True, kw_only=True)
class Brackets(Examples[tuple[int, ...]]):
    """Strings of brackets: 0 … k-1 open, k … 2k-1 close the same kind; the string's end is not written."""

    kinds: int
    """k."""
    depth: int
    """m, the most that may be open."""


@dataclass(frozen=True)
class Stream:
    """A text that need not fit into memory.

    Args:
        lines: called for each pass; gives the text's tokens line by line. What ends a line, if anything does,
            is a token of it.
    """

    lines: Callable[[], Iterator[Sequence[str]]]

    def __iter__(self) -> Iterator[Sequence[str]]:
        """Read the text once more."""
        return self.lines()


@dataclass(frozen=True, kw_only=True)
class Language(Corpus[Stream]):
    """Running text, to be predicted token by token."""

    unit: Literal["word", "character"]
    """What a token is."""


@dataclass(frozen=True, kw_only=True)
class Words(Language):
    """Running text, to be predicted word by word."""

    unit: Literal["word", "character"] = field(default="word", init=False)


@dataclass(frozen=True, kw_only=True)
class Characters(Language):
    """Running text, to be predicted character by character."""

    unit: Literal["word", "character"] = field(default="character", init=False)


class Dataset(ABC):
    """A dataset that can be asked for by name; each one is a file in ``unrolled.lab.data.datasets``."""

    name: ClassVar[str]
    kind: ClassVar[type[Corpus[object]]]
    """The class of what :meth:`read` gives."""
    description: ClassVar[str]
    """One line for a list of datasets."""
    licence: ClassVar[str]
    """Its licence, or what is known of the terms of use."""
    citation: ClassVar[str]

    @abstractmethod
    def read(self, folder: Path | None = None) -> Corpus[object]:
        """Read, or generate, the three splits.

        Args:
            folder: where the datasets' folders lie; the environment variable ``UNROLLED_DATA`` when left out.
                A generated dataset does without.

        Returns:
            The corpus, of the source's ``kind``.
        """
