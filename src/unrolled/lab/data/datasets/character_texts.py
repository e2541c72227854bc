"""Texts as characters: a novel, plays, and Python source code.

The novel and the plays are cut by position, as Karpathy et al. do: the first 80% are the training split, the next two
tenths dev and test. A byte-order mark is removed and CR LF is read as LF. The last line of the novel has no line end in
the file; here it has one, which counts as a character.

``python`` is available on every machine: the source code of the running interpreter's standard library, without its
tests and without installed packages. It is split by module, because the files of a package repeat each other. The text,
and so every result, depends on the version of Python, which is part of the corpus's name.

Source:
    Karpathy, Johnson and Fei-Fei (2015), Visualizing and Understanding Recurrent Networks. arXiv:1506.02078
"""

from __future__ import annotations

import platform
import random
import sysconfig
import tokenize
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from unrolled.errors import DataError, FileError
from unrolled.lab.data.corpus import Characters, Dataset, Stream
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.formats.text import character_lines, cut_by_position

__all__ = ["PythonSource", "TinyShakespeare", "WarAndPeace"]

_SHARES = (8, 1, 1)
_EXCLUDED = {"__pycache__", "dist-packages", "idle_test", "site-packages", "test", "tests"}


class _Book(Dataset):
    """One file of text, cut by position."""

    kind = Characters
    licence = "public domain"
    citation = "Karpathy, Johnson and Fei-Fei (2015), arXiv:1506.02078"
    file: ClassVar[str]

    def read(self, folder: Path | None = None) -> Characters:
        """Find the file; each pass over a stream reads it again."""
        train, dev, test = cut_by_position(find_file(self.file, folder), _SHARES, character_lines)
        return Characters(name=self.name, train=train, dev=dev, test=test)


class WarAndPeace(_Book):
    """Tolstoy's novel in English."""

    name = "war_and_peace"
    description = "a novel: 3,196,213 characters, 82 of them different, cut 80 / 10 / 10"
    file = "charlm/warpeace_input.txt"


class TinyShakespeare(_Book):
    """Scenes of Shakespeare's plays."""

    name = "tinyshakespeare"
    description = "scenes of plays: 1,115,394 characters, 65 of them different, cut 80 / 10 / 10"
    file = "charlm/tinyshakespeare_input.txt"


class PythonSource(Dataset):
    """The standard library of the running interpreter, or the source files of the folder ``library``."""

    name = "python"
    kind = Characters
    description = f"Python {platform.python_version()}'s own standard library: source code, on every machine"
    licence = "PSF License Agreement, as Python"
    citation = "Python Software Foundation, https://docs.python.org/3/library"

    def __init__(self, *, library: Path | None = None) -> None:
        self.library = library or Path(sysconfig.get_paths()["stdlib"])

    def read(self, folder: Path | None = None) -> Characters:
        """List the files; FileError if the library has too few modules, as in an archive. No folder is needed."""
        modules = _group_by_module(self.library)
        splits = _split_modules(modules)
        if not all(splits):
            raise FileError(
                f"{self.library}: expected the source files of Python's standard library, "
                f"found {len(modules)} modules; is it installed without them?"
            )
        train, dev, test = (Stream(partial(_lines, tuple(paths))) for paths in splits)
        return Characters(name=f"python-{platform.python_version()}", train=train, dev=dev, test=test)


def _group_by_module(library: Path) -> dict[str, list[Path]]:
    """List the source files of every module or package, in order."""
    modules: dict[str, list[Path]] = {}
    for path in sorted(library.rglob("*.py"), key=lambda path: path.relative_to(library).as_posix()):
        parts = path.relative_to(library).parts
        if _EXCLUDED.isdisjoint(parts[:-1]) and path.is_file():
            modules.setdefault(parts[0], []).append(path)
    return modules


def _split_modules(modules: dict[str, list[Path]]) -> tuple[list[Path], list[Path], list[Path]]:
    """Draw modules for dev and test, up to a tenth of the bytes each."""
    sizes = {name: sum(path.stat().st_size for path in paths) for name, paths in modules.items()}
    generator = random.Random(0)  # noqa: S311  # no secret
    keys = {name: generator.random() for name in modules}  # only random() is the same in every version
    tenth = sum(sizes.values()) // 10
    remaining = {"dev": tenth, "test": tenth}
    chosen: dict[str, str] = {}
    for name in sorted(modules, key=keys.__getitem__):
        for split, size in remaining.items():
            if sizes[name] <= size:
                chosen[name] = split
                remaining[split] -= sizes[name]
                break
    train, dev, test = (
        [path for name, paths in modules.items() if chosen.get(name, "train") == split for path in paths]
        for split in ("train", "dev", "test")
    )
    return train, dev, test


def _lines(paths: Sequence[Path]) -> Iterator[Sequence[str]]:
    for path in paths:
        try:
            with tokenize.open(path) as file:
                yield from file
        except (SyntaxError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: expected Python's source; {error}") from None
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
