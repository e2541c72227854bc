"""What a run learns from: the names that find its corpus again, to go on with it or to judge it anew."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import Field

from unrolled.errors import FileError, UsageError
from unrolled.lab.data.corpus import Corpus, Examples
from unrolled.lab.data.load import is_dataset, load_dataset
from unrolled.lab.data.text_files import without_compression
from unrolled.lab.settings import Settings

__all__ = ["DataSettings"]

C = TypeVar("C", bound=Corpus[Any])


class DataSettings(Settings):
    """A dataset by its name, or a user's own files."""

    data: tuple[str, ...] = Field(min_length=1)
    """A dataset's name, alone or with settings of its own, as dyck(2,8,seed=3); or the files to train on."""
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
        """A short name, fit for a folder's: the dataset's, or the first file's."""
        name = self.data[0]
        return re.sub(r"\W+", "-", name).strip("-") if is_dataset(name) else without_compression(Path(name)).stem

    def anywhere(self) -> DataSettings:
        """Name files by their whole paths, so that they are found from any folder; other names stay as they are."""
        if is_dataset(self.data[0]):
            return self
        return self.model_copy(update={key: tuple(map(_whole, getattr(self, key))) for key in ("data", "dev", "test")})

    def read(self, kind: type[C], folder: Path | None = None, seed: int = 0) -> C:
        """Read the corpus."""
        dev, test = ([Path(name) for name in names] for names in (self.dev, self.test))
        corpus = load_dataset(self.data, kind, folder, dev=dev, test=test, format=self.format)
        if self.limit is None:
            return corpus
        if not isinstance(corpus, Examples):
            raise UsageError(f"limit is {self.limit}; expected none, as running text has no examples to draw")
        return cast("C", corpus.sample(self.limit, seed))

    def read_again(self, kind: type[C], folder: Path | None = None, seed: int = 0) -> C:
        """Read the corpus that an earlier run was begun with; see :meth:`read`."""
        files = () if is_dataset(self.data[0]) else (*self.data, *self.dev, *self.test)
        for name in files:
            if not Path(name).exists():
                where = "there" if Path(name).is_absolute() else "below the folder where that was"
                raise FileError(
                    f"{name}: no such file, and the run was begun with it; expected it {where}; "
                    "other files are judged by: unrolled evaluate RUN --data FILE"
                )
        return self.read(kind, folder, seed)


def _whole(name: str) -> str:
    """The whole path of a file that is there; its own name stays, as a link's says the format."""
    path = Path(name)
    return str(path.parent.resolve() / path.name) if path.is_file() else name
