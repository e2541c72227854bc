"""The settings of a training: those of the command line, of a settings file and of the task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from unrolled.errors import UnrolledError, UsageError
from unrolled.lab.cli.options import read_option
from unrolled.lab.cli.settings_file import SettingsFile, read_settings

if TYPE_CHECKING:
    from unrolled.lab.models.settings import EncoderSettings
    from unrolled.lab.training.data_settings import DataSettings
    from unrolled.lab.training.settings import TrainingSettings
    from unrolled.lab.training.task import Task

__all__ = ["TrainingChoices", "combine"]

_BETWEEN = re.compile(r"\s+(?![^()]*\))")
"""Separator of a list of names: spaces outside brackets, as in ``dyck(2, 8)``."""


class TrainingChoices(NamedTuple):
    """The settings of a command line and its settings file."""

    architecture: EncoderSettings
    training: TrainingSettings
    data: DataSettings
    out: Path | None


def combine(task: type[Task[Any, Any]], given: dict[str, Any]) -> TrainingChoices:
    """Combine flags, settings file and the task's defaults, in this order of precedence."""
    from unrolled.lab.training.data_settings import DataSettings
    from unrolled.lab.training.settings import TrainingSettings

    written: dict[str, Any] = {}
    if "config" in given:
        file = read_settings(given.pop("config"))
        file.check(("out", *DataSettings.model_fields, *task.Architecture.model_fields, *TrainingSettings.model_fields))
        written = _values_of(task, file, given)
    if "options" in given:
        given["options"] = dict(map(read_option, given["options"]))
    return _validate(task, {**written, **given})


def _values_of(task: type[Task[Any, Any]], file: SettingsFile, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a file, checked by themselves, so that an error names a line of the file and not a flag."""
    values = dict(file.values)
    for key in ("data", "dev", "test"):
        if isinstance(values.get(key), str):
            values[key] = _BETWEEN.split(values[key].strip())
    try:
        _validate(task, {"data": given.get("data"), **values})
    except UnrolledError as error:
        raise file.locate(error) from None
    return values


def _validate(task: type[Task[Any, Any]], values: Mapping[str, Any]) -> TrainingChoices:
    from unrolled.lab.data.load import dataset_names
    from unrolled.lab.training.data_settings import DataSettings
    from unrolled.lab.training.settings import TrainingSettings

    def of(settings: Any) -> dict[str, Any]:
        return {key: value for key, value in values.items() if key in settings.model_fields}

    if not values.get("data"):
        raise UsageError(f"--data is missing; give one of {', '.join(dataset_names(task.kind))}, or your own file")
    out = values.get("out")
    if not isinstance(out, str | Path | None):
        raise UsageError(f"out is {out!r}; give the path of the run folder to write")
    return TrainingChoices(
        architecture=task.Architecture(**of(task.Architecture)),
        training=TrainingSettings(**{**task.training_defaults, **of(TrainingSettings)}),
        data=DataSettings(**of(DataSettings)),
        out=None if out is None else Path(out),
    )
