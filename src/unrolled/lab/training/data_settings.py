"""The settings of the data of a run: a dataset, or a user's own files, which may have moved since."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from pydantic import Field, PrivateAttr, model_validator

from unrolled.errors import FileError, UsageError
from unrolled.lab.data.corpus import Corpus, Examples
from unrolled.lab.data.hub import hub_files
from unrolled.lab.data.load import dataset_files, is_dataset, load_dataset
from unrolled.lab.data.max_length import limit_length
from unrolled.lab.data.reading import Reading
from unrolled.lab.data.text_files import without_compression
from unrolled.lab.settings import Settings
from unrolled.lab.training.file_places import absolute_path, below_common, places_in
from unrolled.named_sources import HUB_PREFIX, is_hub_dataset

__all__ = ["DataSettings"]

C = TypeVar("C", bound=Corpus[Any])


class DataSettings(Settings):
    """A dataset, or a user's own files."""

    later = ("text_column", "label_column", "header", "skip_invalid", "max_length", "longer")
    data: tuple[str, ...] = Field(min_length=1)
    """A dataset, with its settings if it has any: dyck(2,8,seed=3); the files to train on; or hf:NAME or hf:FOLDER."""
    dev: tuple[str, ...] = ()
    """Files on which the best epoch is chosen; a tenth of the data if none are given."""
    test: tuple[str, ...] = ()
    """Files for the final evaluation; a tenth of the data if none are given."""
    format: str | None = None
    """Format of the files, if their suffix does not tell it."""
    limit: int | None = Field(None, ge=1)
    """Train on at most this many examples."""
    text_column: str | None = None
    """Column of the texts in your files: its name, or its number from 1; found if the choice is plain."""
    label_column: str | None = None
    """Column of the labels in your files: its name, or its number from 1; found if the choice is plain."""
    header: bool = True
    """Read the first line of your files as a header if it looks like one; else as an example."""
    skip_invalid: bool = False
    """Leave out and count rows without a text or a label, and test labels that no training example has."""
    max_length: int | None = Field(None, ge=1)
    """Longest text in tokens; see longer."""
    longer: Literal["cut", "skip", "refuse"] = "cut"
    """What to do with an example with a text longer than max_length."""
    _run: tuple[Path, Path] | None = PrivateAttr(None)
    """Of a run that has moved: its folder when it was started, and now."""

    @model_validator(mode="before")
    @classmethod
    def _numbers_as_names(cls, values: Any) -> Any:
        """Let a settings file give a column's number as a number."""
        if isinstance(values, dict):
            names = ("text_column", "label_column")
            return {key: str(value) if key in names and type(value) is int else value for key, value in values.items()}
        return values

    @property
    def reading(self) -> Reading:
        """What is said about the user's own files."""
        return Reading(self.text_column, self.label_column, self.header, self.skip_invalid)

    @property
    def title(self) -> str:
        """A short name that can name a folder: the dataset's, or the first file's."""
        name = self.data[0]
        if is_hub_dataset(name):
            return re.sub(r"\W+", "-", name.removeprefix(HUB_PREFIX).rstrip("/").rpartition("/")[2]).strip("-") or "hf"
        return re.sub(r"\W+", "-", name).strip("-") if is_dataset(name) else without_compression(Path(name)).stem

    @property
    def _are_files(self) -> bool:
        """Whether the data are the user's own files, and not a dataset."""
        return not is_dataset(self.data[0]) and not is_hub_dataset(self.data[0])

    @property
    def _names(self) -> tuple[str, ...]:
        """The names of the files of all splits."""
        return (*self.data, *self.dev, *self.test)

    def renamed(self, name: Callable[[str], str]) -> DataSettings:
        """Name every file, dataset and folder in another way."""
        return self.model_copy(update={key: tuple(map(name, getattr(self, key))) for key in ("data", "dev", "test")})

    def of_run(self, started: Path, now: Path) -> DataSettings:
        """Tell where the folder of a run was and is: files may have moved with it."""
        if started == now or not any(Path(name).is_absolute() for name in self.data):
            return self
        found = self.model_copy()
        found._run = started, now
        return found

    def without_folders(self) -> DataSettings:
        """Name the user's own files, for others, by their places below the deepest folder that holds all of them."""
        if is_dataset(self.data[0]):
            return self
        if is_hub_dataset(self.data[0]):
            folder = Path(self.data[0].removeprefix(HUB_PREFIX))
            return self.renamed(lambda _: f"{HUB_PREFIX}{folder.name}") if folder.is_absolute() else self
        below = below_common(self._names)
        return self.renamed(lambda name: str(below.get(name, Path(name).name)))

    def with_absolute_paths(self) -> DataSettings:
        """Make the paths of files absolute, so that they are found from any folder."""
        if is_dataset(self.data[0]):
            return self
        if is_hub_dataset(self.data[0]):
            folder = self.data[0].removeprefix(HUB_PREFIX)
            known = f"{HUB_PREFIX}{Path(folder).resolve()}" if folder and Path(folder).is_dir() else self.data[0]
            return self.model_copy(update={"data": (known, *self.data[1:])})
        return self.renamed(absolute_path)

    def load_corpus(self, kind: type[C], folder: Path | None = None, seed: int = 0) -> C:
        """Load the corpus; ``seed`` draws the examples if there is a limit, ``folder`` replaces ``UNROLLED_DATA``."""
        dev, test = ([Path(name) for name in names] for names in (self.dev, self.test))
        corpus = load_dataset(self.data, kind, folder, dev=dev, test=test, format=self.format, reading=self.reading)
        if self.max_length is not None:
            corpus = limit_length(corpus, self.max_length, self.longer)
        if self.limit is None:
            return corpus
        if not isinstance(corpus, Examples):
            raise UsageError(f"limit is {self.limit}; but running text has no examples to draw; leave limit out")
        return cast("C", corpus.sample(self.limit, seed))

    def files(self, folder: Path | None = None) -> dict[str, Path]:
        """Return the files that are read: a dataset's by their names in the data folder, others by their paths."""
        if is_dataset(self.data[0]):
            return dataset_files(self.data[0], folder)
        if is_hub_dataset(self.data[0]):
            return hub_files(self.data[0])
        named = self.with_absolute_paths()
        return dict(zip(named._names, map(Path, named.moved_to(folder)._names), strict=True))

    def moved_to(self, folder: Path | None) -> DataSettings:
        """Name the user's own files by where they lie now: those that are gone, by their places below a folder.

        Their places are those below the deepest folder that held all files of the settings; then their names alone,
        of those whose name no other file has; then, beside a run that has moved, their places as seen from it.
        Checksums tell whether they are the same files.
        """
        if not self._are_files:
            return self
        places = self._places(folder)

        def now(name: str) -> str:
            if Path(name).exists():
                return name
            return next((str(place) for place in places[name] if place.is_file()), name)

        return self.renamed(now)

    def _places(self, folder: Path | None) -> dict[str, list[Path]]:
        """Name where each of the files may lie now, other than where it lay."""
        names = self._names
        places = {name: [] for name in names} if folder is None else places_in(names, folder)
        if self._run is None:
            return places
        started, now = self._run
        return {
            name: [*found, Path(os.path.normpath(now / os.path.relpath(name, started)))]
            for name, found in places.items()
        }

    def reload_corpus(self, kind: type[C], folder: Path | None = None, seed: int = 0) -> C:
        """Load the corpus of an earlier run; see :meth:`load_corpus`. Its own files may lie in ``folder`` by now."""
        now = self.moved_to(folder)
        for name in now._names if self._are_files else ():
            if not Path(name).exists():
                hint = "" if Path(name).is_absolute() else ", or change to the folder in which the run was started"
                tried = self._places(folder)[name]
                looked = "".join(f"{place} is no file either; " for place in tried if str(place) != name)
                raise FileError(
                    f"{name}: no such file, but the run was trained on it; {looked}put it back{hint}, or name the "
                    "folder where it lies now: --data-dir FOLDER. To evaluate the run on other files: unrolled "
                    "evaluate RUN --data FILE"
                )
        return now.load_corpus(kind, folder, seed)
