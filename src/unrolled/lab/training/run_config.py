"""The configuration of a run, in ``config.json`` and ``task.json``: what a training needs to begin or to go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unrolled.errors import DataError, FileError, UnrolledError, UsageError
from unrolled.lab.models.settings import EncoderSettings
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.environment import Environment
from unrolled.lab.training.run_files import read_json, read_unchecked_json
from unrolled.lab.training.run_names import CONFIG, TASK, was_replaced
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.stored_paths import abbreviate, expand
from unrolled.lab.training.task import Task
from unrolled.named_sources import check_no_file
from unrolled.registry import Registry

__all__ = ["RunConfig", "is_run", "load_config"]

_FORMAT = "unrolled-run"
_VERSION = 3
_UNCHECKED = 2
"""The earlier version, whose files have no checksums."""
_TASKS: Registry[Task[Any, Any]] = Registry("unrolled.lab.tasks", Task, "task")  # type: ignore[type-abstract]  # members are concrete


@dataclass(frozen=True)
class RunConfig:
    """Everything a run folder holds before the training starts."""

    task: Task[Any, Any]
    settings: TrainingSettings
    data: DataSettings
    sizes: Mapping[str, int]
    """Number of examples of each split."""
    processes: int = 1
    """Size of the process group."""
    environment: Environment = field(default_factory=Environment.of_this_process)
    """Where the training was started."""
    fingerprint: str = ""
    """Of a run of an earlier version: the digest of a sample of its data."""
    checked: bool = True
    """Whether the files of the run have checksums; those of earlier versions have none."""

    def to_record(self, folder: Path) -> dict[str, Any]:
        """Return the content of ``config.json`` of a run that is started in ``folder``, without symbolic links."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "task": self.task.name,
            "folder": abbreviate(str(folder)),
            "data": self.data.renamed(abbreviate).model_dump(mode="json"),
            "examples": dict(self.sizes),
            "processes": self.processes,
            "architecture": self.task.architecture.model_dump(mode="json"),
            "training": self.settings.renamed(abbreviate).model_dump(mode="json"),
            **self.environment.to_record(),
        }


def load_config(folder: Path, task_class: type[Task[Any, Any]] | None = None) -> RunConfig:
    """Read the configuration of a run folder.

    Args:
        folder: The run folder.
        task_class: The class of its task; by default the member of ``unrolled.lab.tasks`` with its name.

    Raises:
        FileError: If the folder does not exist, or a file cannot be read.
        DataError: If it is not a run folder, or a file is missing or damaged.
    """
    if not folder.exists():
        if was_replaced(folder):
            raise FileError(
                f"no run folder {folder}: its replacement was interrupted; `unrolled resume` puts the earlier run back"
            )
        raise FileError(f"no run folder {folder}; give a folder that `unrolled train` wrote")
    config = _read_config(folder)
    path = folder / CONFIG
    try:
        task_class = task_class or _TASKS.get(str(config["task"]))
        architecture: EncoderSettings = task_class.Architecture(**config["architecture"])
        settings = TrainingSettings(**config["training"]).renamed(expand)
        sizes = {str(name): int(size) for name, size in config["examples"].items()}
        data = DataSettings(**config["data"]).renamed(expand)
        if (started := config.get("folder")) is not None:
            data = data.of_run(Path(expand(str(started))), folder.resolve())
        fingerprint, processes = str(config.get("fingerprint", "")), int(config["processes"])
        environment = Environment.from_record(config)
    except (UsageError, DataError) as error:
        raise DataError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{path}: task, data, examples, architecture or training is missing or wrong; {error!r}"
        ) from None
    checked = config["version"] == _VERSION
    fields = read_json(folder, TASK, checksum=checked)
    try:
        task = task_class.from_record(fields, architecture)
    except UnrolledError as error:
        raise DataError(f"{folder / TASK}: {error}") from None
    return RunConfig(task, settings, data, sizes, processes, environment, fingerprint, checked)


def is_run(folder: Path) -> bool:
    """Tell whether a folder has the configuration of a run."""
    try:
        found = read_unchecked_json(folder, CONFIG)
    except (DataError, FileError):
        return False
    return found.get("format") == _FORMAT


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    check_no_file(folder)
    if not path.is_file():
        raise DataError(f"{folder} is not a run folder: it has no {CONFIG}")
    config = read_unchecked_json(folder, CONFIG)
    if config.get("format") != _FORMAT and "model_type" in config:
        names = config.get("architectures")
        name = str(names[0]) if isinstance(names, list) and names else "AutoModel"
        raise DataError(
            f"{folder} is a model of transformers ({config['model_type']}), not a run folder; in Python, "
            f"transformers.{name}.from_pretrained loads it, and unrolled.account or unrolled.explain opens it"
        )
    if config.get("format") != _FORMAT:
        raise DataError(f'{path} is not the configuration of a run: "format" is not "{_FORMAT}"')
    if config.get("version") not in (_UNCHECKED, _VERSION):
        raise DataError(
            f"{path} has version {config.get('version')!r}; this release reads versions {_UNCHECKED} and {_VERSION}"
        )
    return read_json(folder, CONFIG, checksum=config["version"] == _VERSION)
