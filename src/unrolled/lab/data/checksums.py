"""Checksums of a corpus: of its files, and of every example, so that changes, additions and another order differ."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass, replace
from functools import cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from unrolled.errors import DataError, FileError
from unrolled.lab.data.corpus import Corpus, Stream

__all__ = ["CorpusChanges", "CorpusChecksums", "file_checksums"]

_BYTES = 8  # of an example's checksum: among 10 million examples, a collision has a probability of 3e-6
_LINES = 64  # of running text that have one checksum
_NO_FILE = "not a regular file"  # a pipe can be read only once
_SPLITS = ("train", "dev", "test")
_NO_CONTENT = {"name", "notes", *_SPLITS}


def file_checksums(paths: Mapping[str, Path]) -> dict[str, str]:
    """Compute the SHA-256 of each file, by its name; FileError if one cannot be read."""
    return {name: _file_checksum(path) for name, path in paths.items()}


@dataclass(frozen=True)
class CorpusChanges:
    """What differs between a corpus and its checksums, as lines for the user."""

    files: tuple[str, ...] = ()
    """Files that are new, missing or have other content."""
    examples: tuple[str, ...] = ()
    """What differs in the examples of the splits."""
    fields: tuple[str, ...] = ()
    """What differs in the rest of the corpus, such as its labels; a trained model cannot go on with it."""

    @property
    def lines(self) -> tuple[str, ...]:
        """All lines."""
        return (*self.fields, *self.examples, *self.files)


@dataclass(frozen=True)
class CorpusChecksums:
    """Checksums of a corpus."""

    files: Mapping[str, str]
    """SHA-256 of each file, by its name."""
    splits: Mapping[str, bytes]
    """8 bytes for each example, in their order; for running text, for every 64 lines."""
    text: bool
    """Whether it is running text."""
    fields: Mapping[str, str]
    """What else the corpus holds, such as its labels."""
    columns: tuple[str, ...] = ()
    """The columns of tables that were read; empty for other data, and in runs that were started before it was kept."""

    @classmethod
    def of(cls, corpus: Corpus[Any], files: Mapping[str, str]) -> Self:
        """Compute the checksums of a corpus; ``files`` are those of the files that it was read from."""
        return cls(
            files=dict(files),
            splits={name: b"".join(_checksums(split)) for name, split in corpus.splits.items()},
            text=isinstance(corpus.train, Stream),
            fields={each.name: repr(getattr(corpus, each.name)) for each in fields(corpus) if _counts(each)},
            columns=corpus.columns,
        )

    def to_record(self) -> dict[str, Any]:
        """Return the checksums as a JSON object."""
        splits = {name: base64.b64encode(content).decode() for name, content in self.splits.items()}
        return {
            "files": dict(self.files),
            "splits": splits,
            "text": self.text,
            "fields": dict(self.fields),
            "columns": list(self.columns),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the checksums of a JSON object; DataError if it is not one."""
        try:
            splits = {name: base64.b64decode(record["splits"][name], validate=True) for name in _SPLITS}
            if any(len(content) % _BYTES for content in splits.values()):
                raise ValueError("a checksum is cut off")
            files = {str(name): str(found) for name, found in record["files"].items()}
            others = {str(name): str(found) for name, found in record["fields"].items()}
            return cls(files, splits, bool(record["text"]), others, tuple(map(str, record.get("columns", ()))))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"these are no checksums of a corpus; {error!r}") from None

    def renamed(self, name: Callable[[str], str]) -> CorpusChecksums:
        """Name the files in another way."""
        return replace(self, files={name(file): found for file, found in self.files.items()})

    def changes(self, now: CorpusChecksums) -> CorpusChanges:
        """Compare these checksums with those of the corpus as it is now."""
        examples: list[str] = []
        for name in _SPLITS:
            before, after = (np.frombuffer(each.splits[name], dtype=np.uint64) for each in (self, now))
            if not np.array_equal(before, after):
                found = _text_change(before, after) if now.text else _example_changes(before, after)
                examples.append(f"{name}: {found}")
        changed = list(self._field_changes(now))
        if (changed or examples) and self.columns and now.columns and self.columns != now.columns:
            before_that, here = ("; ".join(each.columns) for each in (self, now))
            (changed or examples).insert(0, f"other columns were chosen: {before_that} before, and {here} now")
        return CorpusChanges(tuple(self._file_changes(now)), tuple(examples), tuple(changed))

    def learned(self, now: CorpusChecksums, split: str) -> tuple[int, int]:
        """Count the examples of a split, as it is now, that the model has learned from, and of how many they are.

        Examples that this split shared with the training data from the beginning do not count.
        """
        known = set(_examples(self.splits["train"])) | set(_examples(self.splits["dev"]))
        known -= set(_examples(self.splits[split]))
        mine = _examples(now.splits[split])
        return sum(each in known for each in mine), len(mine)

    def shared(self, examples: Iterable[Any]) -> tuple[int, int]:
        """Count the examples that are among the training examples, and those among the dev examples only."""
        train, dev = (set(_examples(self.splits[name])) for name in ("train", "dev"))
        given = _examples(b"".join(_checksums(examples)))
        return sum(each in train for each in given), sum(each in dev and each not in train for each in given)

    def same_files(self, paths: Iterable[Path]) -> dict[Path, str]:
        """Return the files that have the content of a file of the corpus, with that file's name."""
        names = {found: name for name, found in self.files.items() if found != _NO_FILE}
        given = {path: _file_checksum(path) for path in paths}
        return {path: names[found] for path, found in given.items() if found in names}

    def _file_changes(self, now: CorpusChecksums) -> Iterator[str]:
        for name in sorted({*self.files, *now.files}):
            if name not in now.files:
                yield f"the file {name} is not among the files any more"
            elif name not in self.files:
                yield f"the file {name} is new"
            elif now.files[name] != self.files[name]:
                yield f"the file {name} has other content"

    def _field_changes(self, now: CorpusChecksums) -> Iterator[str]:
        for name in sorted({*self.fields, *now.fields}):
            before, after = (_shortened(each.fields.get(name, "nothing")) for each in (self, now))
            if self.fields.get(name) != now.fields.get(name):
                yield f"the {name} of the corpus were {before}, and are {after}"


def _counts(each: Field[Any]) -> bool:
    return each.name not in _NO_CONTENT and each.compare


def _file_checksum(path: Path) -> str:
    if path.exists() and not path.is_file():
        return _NO_FILE
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None


def _checksums(split: Iterable[Any]) -> Iterator[bytes]:
    if not isinstance(split, Stream):
        return map(_checksum, split)
    lines = iter(split)
    return map(_checksum, iter(lambda: tuple(map(tuple, islice(lines, _LINES))), ()))


def _checksum(example: Any) -> bytes:
    return blake2b(_spelled(example).encode(errors="surrogatepass"), digest_size=_BYTES).digest()


def _spelled(value: Any) -> str:
    """Spell an example as text, another one as another text; no text of a corpus contains NUL."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        try:
            return f"{len(value)}\0{_JOIN(value)}"  # words, nearly always
        except TypeError:
            return f"{len(value)}\0{_JOIN(map(_spelled, value))}"
    if names := _field_names(cast(Hashable, type(value))):
        return _JOIN(_spelled(getattr(value, name)) for name in names)
    return repr(value)


_JOIN = "\0".join


@cache
def _field_names(kind: Hashable) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.compare) if is_dataclass(kind) else ()


def _examples(content: bytes) -> list[int]:
    return np.frombuffer(content, dtype=np.uint64).tolist()


def _text_change(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> str:
    shared = min(len(before), len(after))
    differing = np.flatnonzero(before[:shared] != after[:shared])
    same = int(differing[0]) if len(differing) else shared
    return f"the text is another one after line {same * _LINES:,}"


def _example_changes(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> str:
    had, has = Counter(before.tolist()), Counter(after.tolist())
    new, gone = has - had, had - has
    if not new and not gone:
        return f"the same {len(after):,} examples are in another order"
    said = []
    if new:
        left = had.copy()
        beyond = []
        for number, each in enumerate(after.tolist(), 1):
            left[each] -= 1
            if left[each] < 0:
                beyond.append(number)
        said.append(f"{new.total():,} of {len(after):,} examples are new, the first is number {beyond[0]:,}")
    if gone:
        said.append(f"{gone.total():,} of the {len(before):,} examples of before are gone")
    # Which one of equal examples is new or gone is not known, so their order says nothing.
    as_often = {each for each, count in had.items() if has[each] == count}
    if [each for each in before.tolist() if each in as_often] != [each for each in after.tolist() if each in as_often]:
        said.append("the others are in another order")
    return ", ".join(said)


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
