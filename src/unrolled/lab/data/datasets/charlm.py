"""Texts to be read character by character: a novel, plays, and Python.

The novel and the plays are cut by position, as Karpathy et al. do: the first 80% to train on, then 10% each for dev and
test. Files are read without their byte-order mark, CR LF as LF; the novel's last line, which has no end, gets one.

``python`` is on every machine: the source of the running interpreter's own standard library, without its tests and what
was installed beside it. It is cut by module: all files of a package, or the one file of a module, are in the same
split, since a package's files repeat each other. The text, and so all figures, are of one version of Python; the
corpus's name says which.

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
from unrolled.lab.data.formats.text import character_lines, cut_by_position
from unrolled.lab.data.text_files import find_file

__all__ = ["PythonSource", "TinyShakespeare", "WarAndPeace"]

_SHARES = (8, 1, 1)
_LEFT_OUT = {"__pycache__", "dist-packages", "idle_test", "site-packages", "test", "tests"}


class WarAndPeace(Dataset):
    """Tolstoy's novel in English."""

    name = "war_and_peace"
    kind = Characters
    description = "a novel: 3,196,213 characters, 82 of them different, cut 80 / 10 / 10"
    licence = "public domain"
    citation = "Karpathy, Johnson and Fei-Fei (2015), arXiv:1506.02078"
    file: ClassVar[str] = "charlm/warpeace_input.txt"

    def read(self, folder: Path | None = None) -> Characters:
        """Find the file; it is read as often as the streams are.

        Args:
            folder: where the folder ``charlm`` holds it, plain or packed.

        Returns:
            The text.
        """
        train, dev, test = cut_by_position(find_file(self.file, folder), _SHARES, character_lines)
        return Characters(name=self.name, train=train, dev=dev, test=test)


class TinyShakespeare(WarAndPeace):
    """Scenes of Shakespeare's plays."""

    name = "tinyshakespeare"
    description = "scenes of plays: 1,115,394 characters, 65 of them different, cut 80 / 10 / 10"
    file = "charlm/tinyshakespeare_input.txt"


class PythonSource(Dataset):
    """The standard library of the interpreter that runs this.

    Args:
        library: its folder; that of the interpreter when left out.
    """

    name = "python"
    kind = Characters
    description = f"Python {platform.python_version()}'s own standard library: source code, on every machine"
    licence = "PSF License Agreement, as Python"
    citation = "Python Software Foundation, https://docs.python.org/3/library"

    def __init__(self, *, library: Path | None = None) -> None:
        self.library = library or Path(sysconfig.get_paths()["stdlib"])

    def read(self, folder: Path | None = None) -> Characters:  # no folder is needed
        """List the files; they are read as often as the streams are.

        Args:
            folder: not needed.

        Returns:
            The text.

        Raises:
            FileError: when the library has too few modules, as where it is packed into an archive.
        """
        modules = _modules(self.library)
        splits = _by_module(modules)
        if not all(splits):
            raise FileError(
                f"{self.library}: expected the source files of Python's standard library, "
                f"found {len(modules)} modules; is it installed without them?"
            )
        train, dev, test = (Stream(partial(_lines, tuple(paths))) for paths in splits)
        return Characters(name=f"python-{platform.python_version()}", train=train, dev=dev, test=test)


def _modules(library: Path) -> dict[str, list[Path]]:
    """List the source files of every module or package, in order."""
    modules: dict[str, list[Path]] = {}
    for path in sorted(library.rglob("*.py"), key=lambda path: path.relative_to(library).as_posix()):
        parts = path.relative_to(library).parts
        if _LEFT_OUT.isdisjoint(parts[:-1]) and path.is_file():
            modules.setdefault(parts[0], []).append(path)
    return modules


def _by_module(modules: dict[str, list[Path]], seed: int = 0) -> tuple[list[Path], list[Path], list[Path]]:
    """Draw a tenth of the bytes each for dev and test, module by module."""
    sizes = {name: sum(path.stat().st_size for path in paths) for name, paths in modules.items()}
    generator = random.Random(seed)  # noqa: S311  # no secret
    keys = {name: generator.random() for name in modules}  # random() alone is the same in every version
    tenth = sum(sizes.values()) // 10
    left = {"dev": tenth, "test": tenth}
    chosen: dict[str, str] = {}
    for name in sorted(modules, key=keys.__getitem__):
        for split, room in left.items():
            if sizes[name] <= room:
                chosen[name] = split
                left[split] -= sizes[name]
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
