"""What a run learns from: the names that find its corpus again, to go on with it or to judge it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import Field

from unrolled.config import Config
from unrolled.corpora import load_dataset
from unrolled.errors import UsageError
from unrolled.text.corpus import Corpus, Examples
from unrolled.text.reading import without_packing

__all__ = ["DataChoice"]

C = TypeVar("C", bound=Corpus[Any])


class DataChoice(Config):
    """A dataset by its name, or a user's own files."""

    data: tuple[str, ...] = Field(min_length=1)
    """A dataset's name, or the files to train on."""
    dev: tuple[str, ...] = ()
    """The files that choose the best epoch; a tenth of the data when there are none."""
    test: tuple[str, ...] = ()
    """The files to be judged by at the end; a tenth of the data when there are none."""
    format: str | None = None
    """What the files are, where their suffix does not say."""
    limit: int | None = Field(None, ge=1)
    """Train on so many examples only."""

    @property
    def title(self) -> str:
        """A short name: the dataset's, or the first file's."""
        return without_packing(Path(self.data[0])).stem

    def read(self, kind: type[C], folder: Path | None = None, seed: int = 0) -> C:
        """Read the corpus.

        Args:
            kind: the class of corpus wanted.
            folder: where the datasets' folders lie; the environment variable ``UNROLLED_DATA`` when left out.
            seed: draws the examples when there is a limit.

        Returns:
            The corpus.

        Raises:
            UsageError: when running text is to be limited, which has no examples to draw.
        """
        dev, test = ([Path(name) for name in names] for names in (self.dev, self.test))
        corpus = load_dataset(self.data, kind, folder, dev=dev, test=test, format=self.format)
        if self.limit is None:
            return corpus
        if not isinstance(corpus, Examples):
            raise UsageError(f"limit is {self.limit}; expected none, as running text has no examples to draw")
        return cast("C", corpus.sample(self.limit, seed))
