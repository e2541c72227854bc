"""The settings of a run: how it is trained, and which data it loads."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, cast

from pydantic import Field, PrivateAttr, field_validator, model_validator

from unrolled.errors import FileError, UsageError
from unrolled.lab.data.corpus import Corpus, Examples
from unrolled.lab.data.hub import hub_files
from unrolled.lab.data.load import dataset_files, is_dataset, load_dataset
from unrolled.lab.data.max_length import limit_length
from unrolled.lab.data.reading import Reading
from unrolled.lab.data.text_files import without_compression
from unrolled.lab.settings import Settings
from unrolled.named_sources import HUB_PREFIX, is_hub_dataset

__all__ = ["DataSettings", "TrainingSettings"]


class TrainingSettings(Settings):
    """The training settings. The defaults were chosen on SST-2's dev set."""

    later = ("max_tokens", "freeze_vectors", "spectral_stack")
    epochs: int = Field(10, ge=1)
    """Largest number of passes over the training split."""
    steps: int | None = Field(None, ge=1)
    """Stop after this many steps, even within an epoch."""
    batch: int = Field(64, ge=1)
    """Batch size, over all processes: examples, or for running text the number of parallel streams."""
    max_tokens: int = Field(2**18, ge=1)
    """Largest number of tokens in a batch of texts, padding counted: long texts come in smaller batches."""
    lr: float = Field(0.001, gt=0.0)
    """Learning rate."""
    optimiser: Literal["adam", "adamw", "adagrad", "sgd"] = "adam"
    """Optimiser."""
    momentum: float = Field(0.0, ge=0.0, lt=1.0)
    """Momentum of sgd."""
    weight_decay: float = Field(0.0, ge=0.0)
    """Weight decay, of matrices only."""
    spectral: bool = False
    """Spectral normalisation: divide every recurrent weight by its largest singular value."""
    spectral_stack: bool = False
    """With spectral: divide the matrices of all gates of a cell together, by the value of their stack."""
    clip: float = Field(1.0, ge=0.0)
    """Clip the norm of the gradient to this; 0 for no clipping."""
    patience: int = Field(3, ge=1)
    """Early stopping: stop after this many epochs without a better one on dev; on a small dev split by its loss too."""
    schedule: Literal["constant", "linear", "cosine", "plateau"] = "constant"
    """Decay of the learning rate: to 0 at the last step, or by the factor after an epoch that was not the best."""
    warmup: int = Field(0, ge=0)
    """Number of steps in which the learning rate rises from 0."""
    factor: float = Field(0.5, gt=0.0, lt=1.0)
    """Factor of the schedule plateau."""
    precision: Literal["auto", "full", "bf16", "fp16"] = "auto"
    """Floating-point type on a GPU: full is float32; auto is bf16 if the GPU supports it; a CPU uses full."""
    device: str = "auto"
    """Device: cpu, cuda, cuda:1; auto uses a GPU if there is one."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Random seed; the same seed gives the same network."""
    log_every: int = Field(50, ge=1)
    """Number of steps between two lines of the log."""
    checkpoint_every: int = Field(1000, ge=1)
    """Number of steps between two checkpoints; there is also one at the end of each epoch."""
    vectors: Path | None = None
    """Text file of word vectors, such as GloVe's, that initialise the embeddings."""
    freeze_vectors: bool = False
    """Do not train the word vectors, including those of words that the file lacks."""
    tensorboard: bool = False
    """Also write the log for TensorBoard."""

    def most_steps(self, batches: int) -> int:
        """Return the largest number of steps of a training with so many batches in an epoch."""
        most = self.epochs * batches
        return min(self.steps or most, most)

    def renamed(self, name: Callable[[str], str]) -> TrainingSettings:
        """Name the file of word vectors in another way."""
        return self if self.vectors is None else self.model_copy(update={"vectors": Path(name(str(self.vectors)))})

    @field_validator("device")
    @classmethod
    def _device(cls, name: str) -> str:
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", name, re.ASCII):
            raise UsageError(f"device is {name!r}; expected auto, cpu, cuda or a numbered GPU such as cuda:1")
        return name

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.momentum and self.optimiser != "sgd":
            raise UsageError(
                f"momentum is {self.momentum:g}, but the optimiser is {self.optimiser}; set momentum to 0, "
                "or optimiser to sgd"
            )
        if self.spectral_stack and not self.spectral:
            raise UsageError("spectral_stack is set, but spectral is not; set spectral too, or leave it out")
        if self.freeze_vectors and self.vectors is None:
            raise UsageError("freeze_vectors is set, but vectors is not; give a file of word vectors, or leave it out")
        return self


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
        return self.model_copy(update={key: tuple(map(name, getattr(self, key))) for key in _FILES})

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
        below = _below_common(self._names)
        return self.renamed(lambda name: str(below.get(name, Path(name).name)))

    def with_absolute_paths(self) -> DataSettings:
        """Make the paths of files absolute, so that they are found from any folder."""
        if is_dataset(self.data[0]):
            return self
        if is_hub_dataset(self.data[0]):
            folder = self.data[0].removeprefix(HUB_PREFIX)
            known = f"{HUB_PREFIX}{Path(folder).resolve()}" if folder and Path(folder).is_dir() else self.data[0]
            return self.model_copy(update={"data": (known, *self.data[1:])})
        return self.renamed(_absolute)

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

    def _places(self, folder: Path | None) -> Mapping[str, list[Path]]:
        """Name where each of the files may lie now, other than where it lay."""
        names = self._names
        places = dict.fromkeys(names, ()) if folder is None else _places(names, folder)
        if self._run is None:
            return {name: list(found) for name, found in places.items()}
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


_FILES = ("data", "dev", "test")


def _places(names: Sequence[str], folder: Path) -> dict[str, Sequence[Path]]:
    """Name where each of some files may lie in a folder: below it as in the folder that held all, or by its name."""
    below = _below_common(names)
    count = Counter(path.name for path in set(map(_normal, names)))
    places: dict[str, Sequence[Path]] = {}
    for name in names:
        inside = [folder / below[name]] if name in below else []
        alone = [folder / _normal(name).name] if count[_normal(name).name] == 1 else []
        places[name] = list(dict.fromkeys([*inside, *alone]))
    return places


def _below_common(names: Sequence[str]) -> dict[str, Path]:
    """Name files by their places below the deepest folder that holds all; nothing on different drives of Windows."""
    try:
        common = os.path.commonpath([_normal(name).parent for name in names])
    except ValueError:
        return {}
    return {name: _normal(name).relative_to(common) for name in names}


def _normal(name: str) -> Path:
    return Path(os.path.normpath(Path(name).absolute()))


def _absolute(name: str) -> str:
    """Make the path of an existing file absolute; a link is not followed, since its suffix tells the format."""
    path = Path(name)
    return str(path.parent.resolve() / path.name) if path.is_file() else name
