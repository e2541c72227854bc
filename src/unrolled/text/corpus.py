"""What a labelled dataset is: examples, three splits, and a source that reads them."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from unrolled.errors import UsageError

__all__ = ["Dataset", "DatasetSource", "Example"]


@dataclass(frozen=True, slots=True)
class Example:
    """One text and its class."""

    tokens: tuple[str, ...]
    label: int
    """An index into the dataset's ``labels``."""


@dataclass(frozen=True)
class Dataset:
    """Three splits of labelled texts."""

    name: str
    labels: tuple[str, ...]
    """The classes' names, in the order of their indices."""
    train: tuple[Example, ...]
    dev: tuple[Example, ...]
    """Chooses the best epoch; never trained on."""
    test: tuple[Example, ...]
    """Looked at once, at the end."""

    def sample(self, count: int, seed: int = 0) -> Dataset:
        """Keep only some of the training texts, drawn at random; dev and test stay whole.

        Args:
            count: how many; all of them when there are no more.
            seed: which.

        Returns:
            The smaller dataset.

        Raises:
            UsageError: when ``count`` is not positive.
        """
        if count < 1:
            raise UsageError(f"{count} training texts were asked for; expected 1 or more")
        chosen = random.Random(seed).sample(self.train, min(count, len(self.train)))  # noqa: S311  # no secret
        return replace(self, train=tuple(chosen))


class DatasetSource(ABC):
    """A dataset that can be asked for by name; each one is a file in ``unrolled.datasets``."""

    name: ClassVar[str]
    description: ClassVar[str]
    """One line for a list of datasets."""
    licence: ClassVar[str]
    """Its licence, or what is known of the terms of use."""
    citation: ClassVar[str]

    @abstractmethod
    def read(self, folder: Path | None = None) -> Dataset:
        """Read, or generate, the three splits.

        Args:
            folder: where the datasets' folders lie; the environment variable ``UNROLLED_DATA`` when left out.
                A generated dataset does without.

        Returns:
            The dataset.
        """
