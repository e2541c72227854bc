"""Whether the data of a run are still those that it was trained on.

The checksums stand in ``data.json``: see :mod:`unrolled.lab.data.checksums`. A run of an earlier version has none:
:mod:`unrolled.lab.training.sample_check` compares a sample of its examples.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from unrolled.atomic_write import atomic_write
from unrolled.errors import DataError, FileError, UnrolledError
from unrolled.lab.data.checksums import CorpusChanges, CorpusChecksums, file_checksums
from unrolled.lab.data.corpus import Corpus
from unrolled.lab.data.max_length import cut_long, longest_text
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.run_files import read_json, to_json
from unrolled.lab.training.run_names import DATA
from unrolled.lab.training.stored_paths import abbreviate, expand

__all__ = [
    "check_data",
    "data_warnings",
    "file_warnings",
    "read_with_checksums",
    "trained_columns",
    "write_checksums",
]

C = TypeVar("C", bound=Corpus[Any])
_NAME = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_COLUMNS = re.compile(rf"texts from {_NAME}, labels from {_NAME}")
"""How a corpus names its columns; the names are written as Python's ``repr`` writes them."""


def read_with_checksums(read: Callable[[], C], data: DataSettings, folder: Path | None) -> tuple[C, dict[str, str]]:
    """Read a corpus, and return it with the checksums of its files; FileError if one of them changes meanwhile.

    Args:
        read: Reads the corpus.
        data: The data settings, which name the files.
        folder: The data folder.
    """
    try:
        before = file_checksums(data.files(folder))
    except UnrolledError:  # reading says better what is missing
        before = {}
    corpus = read()
    files = file_checksums(data.files(folder))
    for name, checksum in files.items():
        if before.get(name, checksum) != checksum:
            raise FileError(f"{name} changed while it was read; once it is written, give the same command again")
    return corpus, files


def write_checksums(folder: Path, checksums: CorpusChecksums, accepted: tuple[Mapping[str, Any], ...] = ()) -> None:
    """Write the checksums of the data into a run folder; ``accepted`` are the changes that were accepted so far."""
    record = {**checksums.renamed(abbreviate).to_record(), "accepted": list(accepted)}
    atomic_write(folder / DATA, to_json(record), durable=True)


def check_data(
    folder: Path,
    corpus: Corpus[Any],
    files: Mapping[str, str],
    accept: bool,
    say: Callable[[str], None],
) -> None:
    """Check that a corpus is the one of a run with checksums, before its training goes on.

    Args:
        folder: The run folder, which this process may write.
        corpus: The corpus as it is now.
        files: The checksums of the files that it was read from.
        accept: Whether to go on with other examples; that is recorded in the run folder.
        say: Receives a line about what changed and does not matter, or was accepted.

    Raises:
        DataError: If examples have changed and are not accepted, or the labels have changed.
    """
    if not (folder / DATA).is_file():
        return
    before, accepted = _read(folder)
    now = CorpusChecksums.of(corpus, files)
    changes, otherwise = before.changes(now), _read_otherwise(before, now)
    if changes.fields:
        said = "; ".join(changes.fields) + otherwise
        raise DataError(f"{folder} was trained on other data: {said}; train a new run on them")
    said = "; ".join(changes.lines)
    if changes.examples and not accept:
        way = "Train a new run on them" if otherwise else "Put the data back"
        raise DataError(
            f"{folder} was started with other data: {said}{otherwise}. {way}, or pass --accept-changed-data to go on "
            "with them, which is recorded in the run"
        )
    if changes.examples:
        say(f"the data have changed, and are accepted: {said}")
        kept = before.renamed(abbreviate).changes(now.renamed(abbreviate))  # a run folder names no home
        write_checksums(folder, now, (*accepted, {"changes": list(kept.lines)}))
    elif changes.files:
        say(f"{said}; but the examples are the same")


def data_warnings(folder: Path, corpus: Corpus[Any], files: Mapping[str, str], split: str) -> tuple[str, ...]:
    """Return lines on how a corpus differs from the one of a run, for its evaluation on a split.

    Raises:
        DataError: If its labels are others, so that an evaluation would be wrong.
    """
    if not (folder / DATA).is_file():
        return (f"{folder} is of an earlier version, which kept no checksums: the data were not compared",)
    before, accepted = _read(folder)
    now = CorpusChecksums.of(corpus, files)
    changes, otherwise = before.changes(now), _read_otherwise(before, now)
    if changes.fields:
        way = "train a new run on them" if otherwise else "pass --data FILE"
        raise DataError(f"{folder} was trained on other data: {'; '.join(changes.fields)}{otherwise}; {way}")
    lines = [f"accepted when the training went on: {line}" for each in accepted for line in each["changes"]]
    lines += _changed_lines(changes)
    if changes.examples and otherwise:
        lines.append(f"{otherwise.removeprefix('; ')}: train a new run on them")
    if not now.text and changes.examples and split != "train":
        learned, count = before.learned(now, split)
        if learned:
            lines.append(f"{learned:,} of the {count:,} examples of {split} are ones that the model was trained on")
    return tuple(lines)


def file_warnings(folder: Path, examples: Iterable[Any], paths: Sequence[Path], data: DataSettings) -> tuple[str, ...]:
    """Return lines on what of some files a run was trained on, for its evaluation on them.

    Args:
        folder: The run folder.
        examples: What was read from the files.
        paths: The files.
        data: The data settings of the run.
    """
    if not (folder / DATA).is_file():
        return (f"{folder} is of an earlier version, which kept no checksums: the examples were not compared",)
    before, _ = _read(folder)
    if before.text:
        found = before.same_files(paths)
        return tuple(f"{path} has the content of {name}, a file of the run's own data" for path, name in found.items())
    given = tuple(examples)
    return (*_longer_than_trained(given, data), *_seen_in_training(before, given, data))


def _longer_than_trained(given: Sequence[Any], data: DataSettings) -> Iterator[str]:
    """Say how many examples were longer than those of the training could be."""
    if data.max_length is not None and (over := sum(longest_text(each) > data.max_length for each in given)):
        texts = f"{over:,} of the {len(given):,} examples"
        yield f"{texts} have more tokens than the {data.max_length:,} of --max-length; they are read whole"


def _seen_in_training(before: CorpusChecksums, given: Sequence[Any], data: DataSettings) -> Iterator[str]:
    """Say how many examples the training has seen, if it has seen any."""
    if data.max_length is not None and data.longer == "cut":
        given = tuple(cut_long(given, data.max_length))
    train, dev = before.shared(given)
    count, seen = len(given), []
    if train:
        seen.append(f"{train:,} of the {count:,} examples ({train / count:.1%}) are ones that the model was trained on")
    if dev:
        which = f"{dev:,} more" if train else f"{dev:,} of the {count:,} examples ({dev / count:.1%})"
        seen.append(f"{which} chose its best epoch")
    if seen:
        yield f"{', and '.join(seen)}: the metrics do not measure it on new examples"


def trained_columns(folder: Path) -> tuple[str | None, str | None]:
    """Return the names of the columns of texts and labels that a run was trained on; None if they were several."""
    if not (folder / DATA).is_file():
        return None, None
    found = [_COLUMNS.fullmatch(line) for line in _read(folder)[0].columns]
    if len(found) != 1 or found[0] is None:
        return None, None
    text, label = (str(ast.literal_eval(name)) for name in found[0].groups())
    return text, label


def _read_otherwise(before: CorpusChecksums, now: CorpusChecksums) -> str:
    """Say that it is the reading that has changed, where all files are as they were."""
    # such as quotes behind spaces, which earlier versions left in labels and texts
    same = bool(now.files) and now.files == before.files
    return "; the files are as they were, but an earlier version of unrolled read them in another way" * same


def _changed_lines(changes: CorpusChanges) -> list[str]:
    if changes.files and not changes.examples:
        return [f"{line}; but the examples are the same" for line in changes.files]
    return [f"the data have changed since the training: {line}" for line in changes.lines]


def _read(folder: Path) -> tuple[CorpusChecksums, tuple[Mapping[str, Any], ...]]:
    record = read_json(folder, DATA, checksum=True)
    try:
        accepted = tuple({"changes": [str(line) for line in each["changes"]]} for each in record["accepted"])
        return CorpusChecksums.from_record(record).renamed(expand), accepted
    except (DataError, KeyError, TypeError) as error:
        raise DataError(f"{folder / DATA}: not the checksums of a run's data; {error}") from None
