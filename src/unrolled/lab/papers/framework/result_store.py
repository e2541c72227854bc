"""Results on disk: one file for each item, ``PAPER/ITEM.jsonl``, with one line for each trial.

A line is appended under a file lock, which ends with the process that holds it. So two processes can share a folder,
and an interrupted process leaves whole lines. Where two lines have one key, the last counts. A last line that a crash
cut off is ignored, and removed by the next append. Earlier versions wrote one JSON file for each trial,
``PAPER/ITEM/SCALE/KEY.json``: those are read as well, and ``import_from`` appends them to the item's file.
"""

from __future__ import annotations

import fcntl
import json
import platform
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from unrolled.errors import DataError, FileError
from unrolled.lab.papers.framework.experiment import Experiment, Result, Scale, Trial
from unrolled.lab.training.versions import find_commit, installed_versions

__all__ = ["ResultStore", "versions"]


_PACKAGES = ("unrolled", "torch", "numpy", "scikit-learn", "nltk", "seqeval", "sacrebleu", "pytorch-crf", "captum")


def versions() -> dict[str, str]:
    """List the versions of Python and of the installed packages that a result may depend on, and our own commit."""
    found = {"python": platform.python_version()}
    if commit := find_commit():
        found["commit"] = commit
    return found | installed_versions(_PACKAGES)


_FORMAT = "unrolled-result"
_FIELDS = ("values", "seconds", "when", "command", "machine", "versions")
_Key = tuple[str, str]
"""Scale, and the trial's key."""


class ResultStore:
    """A folder of results, made when the first result is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[Path, tuple[object, dict[_Key, dict[str, Any]]]] = {}

    @property
    def networks(self) -> Path:
        """The folder of trained networks that several trials share; they can be trained again."""
        return self.folder / "networks"

    def path(self, item: str) -> Path:
        """Return the path of an item's file."""
        return self.folder / f"{item}.jsonl"

    def work_folder(self, experiment: Experiment, scale: Scale, trial: Trial) -> Path:
        """Return the folder in which a trial keeps its checkpoints while it runs."""
        return self.folder / experiment.name / scale / f"{experiment.key(trial)}.work"

    def find(self, experiment: Experiment, scale: Scale, trial: Trial) -> Result | None:
        """Return the result of a trial, or None where it has not run.

        Raises:
            DataError: If a file holds something else.
        """
        key = experiment.key(trial)
        record = self.records(experiment.name).get((scale, key))
        if record is None:
            path = self.folder / experiment.name / scale / f"{key}.json"
            if not path.is_file():
                return None
            record = _parse(path.read_text(encoding="utf-8"), str(path))
        return Result(trial=trial, **{name: record[name] for name in _FIELDS})

    def keep(self, experiment: Experiment, scale: Scale, result: Result) -> Path:
        """Append a result to the item's file, whole or not at all, and return the file's path.

        Raises:
            FileError: If it cannot be written.
        """
        record = {
            "format": _FORMAT,
            "experiment": experiment.name,
            "version": experiment.version,
            "scale": scale,
            "label": result.trial.label,
            "settings": dict(result.trial.settings),
            **{name: getattr(result, name) for name in _FIELDS},
            "seconds": round(result.seconds, 1),
        }
        return self._append(experiment.name, [record])

    def import_from(self, folder: Path) -> int:
        """Append the results of another folder, in either format, that this one lacks; return how many.

        Files of the earlier format that lie in this store's own folder are removed once they are appended.
        """
        count = 0
        for path in sorted(folder.glob("*/*.jsonl")):
            item = f"{path.parent.name}/{path.stem}"
            count += self._add_missing(item, ResultStore(folder).records(item).values())
        for path in sorted(folder.glob("*/*/*/*.json")):
            record = _parse(path.read_text(encoding="utf-8"), str(path))
            count += self._add_missing(record["experiment"], [record])
            if folder.resolve() == self.folder.resolve():
                path.unlink()
        return count

    def records(self, item: str) -> dict[_Key, dict[str, Any]]:
        """Read an item's file, unless it has not changed since it was read last."""
        path = self.path(item)
        try:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                now = path.stat()
                stamp = (now.st_mtime_ns, now.st_size, now.st_ino)
                if path not in self._read or self._read[path][0] != stamp:
                    self._read[path] = stamp, {_key(record): record for record in _parse_lines(file.read(), path)}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
        return self._read[path][1]

    def _add_missing(self, item: str, records: Iterable[dict[str, Any]]) -> int:
        known = self.records(item)
        missing = [record for record in records if _key(record) not in known]
        if missing:
            self._append(item, missing)
        return len(missing)

    def _append(self, item: str, records: list[dict[str, Any]]) -> Path:
        path = self.path(item)
        lines = "".join(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in records)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                _remove_torn_line(file)
                file.write(lines.encode())
        except OSError as error:
            raise FileError(f"cannot write {path}: {error.strerror or error}") from None
        return path


def _key(record: dict[str, Any]) -> _Key:
    return record["scale"], Trial(record["label"], record["settings"]).key(record["experiment"], record["version"])


def _parse_lines(content: bytes, path: Path) -> Iterator[dict[str, Any]]:
    """Parse the whole lines; warn of a last one that was cut off."""
    *lines, rest = content.decode(errors="replace").split("\n")
    if rest:
        warnings.warn(f"{path}: the last line is incomplete and is ignored; its trial runs again", stacklevel=2)
    for number, line in enumerate(lines, start=1):
        yield _parse(line, f"{path}, line {number}")


def _parse(text: str, place: str) -> dict[str, Any]:
    try:
        record: Any = json.loads(text)
    except ValueError as error:
        raise DataError(f"{place}: not whole JSON ({error}); remove it to run the trial again") from None
    if not isinstance(record, dict) or record.get("format") != _FORMAT or "values" not in record:
        raise DataError(f'{place}: not a result of unrolled: a result has "format": "{_FORMAT}"; remove it')
    return record


def _remove_torn_line(file: IO[bytes]) -> None:
    """Remove what a crash left of a last line; whoever holds the lock is the only writer."""
    file.seek(0)
    content = file.read()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        file.truncate(whole)
