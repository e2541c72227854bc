"""The archive: every trial that has been run, one JSON file each.

A file's name is made of what decides the trial's outcome, so a trial is never run twice and an experiment goes on
where it was stopped. Two processes may work on one experiment: files are written beside their place and renamed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unrolled.atomic_write import atomic_write
from unrolled.errors import DataError, FileError
from unrolled.lab.papers.framework.experiment import Experiment, Result, Scale, Trial

__all__ = ["Archive"]

_FORMAT = "unrolled-result"
# A list of numbers, which is to stand on one line. It begins with a line break, so it is never part of a string.
_NUMBERS = re.compile(r"\[\n(?:\s|[-+.,\deE]|null)*\]")


class Archive:
    """A folder of results.

    Args:
        folder: made when the first result is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def networks(self) -> Path:
        """Where trained networks are kept that several trials open; they can be trained again."""
        return self.folder / "networks"

    def path(self, experiment: Experiment, scale: Scale, trial: Trial) -> Path:
        """Tell where a trial's result lies, or would lie.

        Args:
            experiment: whose trial it is.
            scale: at which it is run.
            trial: the trial.

        Returns:
            The path of a JSON file.
        """
        return self.folder / experiment.name / scale / f"{trial.key(experiment.name, experiment.version)}.json"

    def find(self, experiment: Experiment, scale: Scale, trial: Trial) -> Result | None:
        """Look a trial up.

        Args:
            experiment: whose trial it is.
            scale: at which it was run.
            trial: the trial.

        Returns:
            Its result; None when it has not been run.

        Raises:
            DataError: when the file is not a result of ours.
        """
        path = self.path(experiment, scale, trial)
        try:
            record: Any = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DataError(f"{path}: expected whole JSON; {error}; remove it to run the trial again") from None
        if not isinstance(record, dict) or record.get("format") != _FORMAT or "values" not in record:
            raise DataError(f'{path} is not ours; expected "format": "{_FORMAT}"')
        known = {key: record[key] for key in ("values", "seconds", "when", "command", "machine", "versions")}
        return Result(trial=trial, **known)

    def keep(self, experiment: Experiment, scale: Scale, result: Result) -> Path:
        """Keep a result, whole or not at all.

        Args:
            experiment: whose trial it is.
            scale: at which it was run.
            result: what came of it.

        Returns:
            Where it lies.

        Raises:
            FileError: when it cannot be written.
        """
        path = self.path(experiment, scale, result.trial)
        record: Mapping[str, Any] = {
            "format": _FORMAT,
            "experiment": experiment.name,
            "version": experiment.version,
            "scale": scale,
            "label": result.trial.label,
            "settings": dict(result.trial.settings),
            "values": dict(result.values),
            "seconds": round(result.seconds, 1),
            "when": result.when,
            "command": result.command,
            "machine": result.machine,
            "versions": dict(result.versions),
        }
        text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        text = _NUMBERS.sub(lambda found: " ".join(found[0].split()), text)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot create the folder {str(path.parent)!r}: {error.strerror or error}") from None
        atomic_write(path, text.encode())
        return path
