"""The data of a run: the names that load its corpus, and a fingerprint that tells whether the data have changed."""

from __future__ import annotations

import hashlib
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import Field
from torch import Tensor

from unrolled.errors import FileError, UsageError
from unrolled.lab.data.batches.base import Batch
from unrolled.lab.data.corpus import Corpus, Examples
from unrolled.lab.data.load import is_dataset, load_dataset
from unrolled.lab.data.text_files import without_compression
from unrolled.lab.settings import Settings
from unrolled.lab.training.task import Split

__all__ = ["DataSettings", "fingerprint"]

_SAMPLES = 16  # batches of a split that enter its fingerprint

C = TypeVar("C", bound=Corpus[Any])


class DataSettings(Settings):
    """A dataset, or a user's own files."""

    data: tuple[str, ...] = Field(min_length=1)
    """A dataset, with its settings if it has any: dyck(2,8,seed=3); or the files to train on."""
    dev: tuple[str, ...] = ()
    """Files on which the best epoch is chosen; a tenth of the data if none are given."""
    test: tuple[str, ...] = ()
    """Files for the final evaluation; a tenth of the data if none are given."""
    format: str | None = None
    """Format of the files, if their suffix does not tell it."""
    limit: int | None = Field(None, ge=1)
    """Train on at most this many examples."""

    @property
    def title(self) -> str:
        """A short name that can name a folder: the dataset's, or the first file's."""
        name = self.data[0]
        return re.sub(r"\W+", "-", name).strip("-") if is_dataset(name) else without_compression(Path(name)).stem

    def with_absolute_paths(self) -> DataSettings:
        """Make the paths of files absolute, so that they are found from any folder."""
        if is_dataset(self.data[0]):
            return self
        return self.model_copy(
            update={key: tuple(map(_absolute, getattr(self, key))) for key in ("data", "dev", "test")}
        )

    def load_corpus(self, kind: type[C], folder: Path | None = None, seed: int = 0) -> C:
        """Load the corpus; ``seed`` draws the examples if there is a limit, ``folder`` replaces ``UNROLLED_DATA``."""
        dev, test = ([Path(name) for name in names] for names in (self.dev, self.test))
        corpus = load_dataset(self.data, kind, folder, dev=dev, test=test, format=self.format)
        if self.limit is None:
            return corpus
        if not isinstance(corpus, Examples):
            raise UsageError(f"limit is {self.limit}; but running text has no examples to draw; leave limit out")
        return cast("C", corpus.sample(self.limit, seed))

    def reload_corpus(self, kind: type[C], folder: Path | None = None, seed: int = 0) -> C:
        """Load the corpus of an earlier run; see :meth:`load_corpus`."""
        files = () if is_dataset(self.data[0]) else (*self.data, *self.dev, *self.test)
        for name in files:
            if not Path(name).exists():
                hint = "" if Path(name).is_absolute() else ", or change to the folder in which the run was started"
                raise FileError(
                    f"{name}: no such file, but the run was trained on it; put it back{hint}. "
                    "To evaluate the run on other files: unrolled evaluate RUN --data FILE"
                )
        return self.load_corpus(kind, folder, seed)


def _absolute(name: str) -> str:
    """Make the path of an existing file absolute; a link is not followed, since its suffix tells the format."""
    path = Path(name)
    return str(path.parent.resolve() / path.name) if path.is_file() else name


def fingerprint(size: int, *splits: Split[Batch]) -> str:
    """Compute a digest of some splits: their sizes, and 16 batches of each, from its beginning to its end."""
    digest = hashlib.sha256()
    for split in splits:
        plan = split.plan(size)
        digest.update(f"{len(split)} {len(plan)}".encode())
        for sample in range(_SAMPLES):
            batch = split.select(plan[sample * (len(plan) - 1) // (_SAMPLES - 1)])
            for field in fields(batch):
                value = getattr(batch, field.name)
                if isinstance(value, Tensor):
                    digest.update(value.numpy(force=True).tobytes())
    return digest.hexdigest()[:16]
