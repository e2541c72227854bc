"""Plain text for language models, word by word or character by character; never in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from unrolled.lab.data.corpus import Characters, Corpus, Stream, Words
from unrolled.lab.data.file_format import Files, Format
from unrolled.lab.data.line_tokenisers import cutter
from unrolled.lab.data.running_text import characters, stretches, words
from unrolled.lab.data.text_files import iter_lines, malformed, without_packing

__all__ = ["Text"]

_SHARES = {2: (9, 1), 3: (8, 1, 1)}

Tokens = Callable[[Iterable[str]], Iterator[Sequence[str]]]


class Text(Format):
    """A file is one text, or a stretch of it.

    Dev and test, where they have no file, are the last tenths of the last training file: neighbouring lines are alike,
    so they are not drawn at random.
    """

    name = "text"
    suffixes = ()
    description = "plain text in any file; words end at spaces alone in .tokens and where the name says tok or bpe"
    kinds = (Words, Characters)

    def read(self, files: Files, kind: type[Corpus[Any]]) -> Corpus[Any]:
        """Find stretches for the splits; they are read as often as the streams are.

        Args:
            files: the training files and, where there are some, those of dev and test.
            kind: of words or of characters.

        Returns:
            The text; DataError when a file is empty, or too short to be cut.
        """
        *whole, last = files.train
        given = {"dev": files.dev, "test": files.test}
        for path in (*files.train, *files.dev, *files.test):
            _check(path)
        missing = [split for split, paths in given.items() if not paths]
        first, *rest = (
            stretches(last, _SHARES[1 + len(missing)], _tokens(last, kind)) if missing else (_stream([last], kind),)
        )
        splits = {"train": _chained([*map(partial(_stream, kind=kind), [[path] for path in whole]), first])}
        for split, paths in given.items():
            splits[split] = _stream(paths, kind) if paths else rest.pop(0)
        assert issubclass(kind, Words | Characters)
        return kind(name=files.name, **splits)

    def split(self, paths: Sequence[Path], kind: type[Corpus[Any]], known: Sequence[str]) -> Stream:
        """Read files one after the other as one text; see :meth:`Format.split`.

        Args:
            paths: one file or more.
            kind: of words or of characters.
            known: nothing: running text has no classes.

        Returns:
            The text.
        """
        for path in paths:
            _check(path)
        return _stream(paths, kind)


def _tokens(path: Path, kind: type[Corpus[Any]]) -> Tokens:
    return characters if issubclass(kind, Characters) else partial(words, cut=cutter(without_packing(path)))


def _check(path: Path) -> None:
    """Refuse a file without text before an hour is spent on the others."""
    if not any(line.strip() for line in iter_lines(path)):
        raise malformed(path, 1, "text", "none in the whole file", "is it the right file?")


def _stream(paths: Sequence[Path], kind: type[Corpus[Any]]) -> Stream:
    return Stream(partial(_read, paths, kind))


def _read(paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[Sequence[str]]:
    for path in paths:
        yield from _tokens(path, kind)(iter_lines(path))


def _chained(streams: Sequence[Stream]) -> Stream:
    return Stream(lambda: chain.from_iterable(streams))
