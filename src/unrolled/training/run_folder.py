"""Run folders: a trained classifier on disk, as JSON and safetensors.

- ``config.json``: our mark and version, the labels, what the model is made of and how it was trained;
- ``vocabulary.json``: the words;
- ``weights.safetensors``: the weights;
- ``metrics.json``: how well it does;
- ``history.jsonl``: one line an epoch.

A folder is written beside its place under another name and then renamed, so it is whole or not there at all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from unrolled.catalogue import ClassifierConfig, build
from unrolled.errors import DataError, FileError, UsageError
from unrolled.models.classifier import Classifier
from unrolled.text.vocabulary import Vocabulary
from unrolled.training.loop import Epoch, TrainingSettings, seeded

__all__ = ["Run", "check_destination", "load_run", "save_run"]

_FORMAT = "unrolled-run"
_VERSION = 1
_CONFIG = "config.json"
_VOCABULARY = "vocabulary.json"
_WEIGHTS = "weights.safetensors"
_METRICS = "metrics.json"
_HISTORY = "history.jsonl"


@dataclass(frozen=True)
class Run:
    """A trained classifier and all that is known of it."""

    model: Classifier
    """In eval mode."""
    config: ClassifierConfig
    vocabulary: Vocabulary
    labels: tuple[str, ...]
    """The classes' names, in the order of the logits."""
    data: str
    """The name of the dataset it was trained on."""
    settings: TrainingSettings
    metrics: Mapping[str, float]
    history: tuple[Epoch, ...]


def check_destination(folder: Path) -> None:
    """Make sure, before hours of work, that a run can be saved to ``folder``.

    Args:
        folder: a place where nothing is yet, or an earlier run, which saving would replace.

    Raises:
        FileError: when something that is not a run stands there, or no folder can be made there.
    """
    if folder.exists() and not _is_run(folder):
        raise FileError(f"{folder} exists and is no run folder; expected a new name, or an earlier run to replace")
    parent = next(place for place in folder.absolute().parents if place.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise FileError(f"{folder} cannot be written; expected {parent} to be a folder with leave to write")


def save_run(run: Run, folder: Path) -> None:
    """Write a run; an earlier run of this name is replaced.

    Args:
        run: what to write.
        folder: where; its parents are made.

    Raises:
        FileError: when it cannot be written; nothing is left behind then.
    """
    folder = folder.resolve()
    check_destination(folder)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    replaced = folder.with_name(f".{folder.name}.{os.getpid()}.replaced")
    try:
        partial.mkdir(parents=True)
        _write(run, partial)
        if folder.exists():
            folder.rename(replaced)
        partial.rename(folder)
    except OSError as error:
        raise FileError(f"{folder}: cannot be written: {error}") from None
    finally:
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def load_run(folder: Path) -> Run:
    """Read a run that :func:`save_run` wrote.

    Args:
        folder: where it lies.

    Returns:
        The run; its model is on the CPU, in eval mode.

    Raises:
        FileError: when there is no such folder, or a file cannot be read.
        DataError: when it is no run of ours, or a file is missing, truncated or does not fit the others.
    """
    if not folder.exists():
        raise FileError(f"no run folder {folder}; expected one that `unrolled train` wrote")
    config = _read_config(folder)
    try:
        model_config = ClassifierConfig(**config["model"])
        settings = TrainingSettings(**config["training"])
        labels = tuple(map(str, config["labels"]))
        data = str(config["data"])
    except UsageError as error:
        raise DataError(f"{folder / _CONFIG}: {error}") from None
    except (KeyError, TypeError) as error:
        raise DataError(f"{folder / _CONFIG}: expected model, training, labels and data; {error!r}") from None
    vocabulary = Vocabulary.load(_present(folder, _VOCABULARY))
    for what, came, expected in (
        (_VOCABULARY, len(vocabulary), model_config.vocabulary),
        ("labels", len(labels), model_config.classes),
    ):
        if came != expected:
            raise DataError(f"{folder}: {what} has {came} entries; expected {expected}, as {_CONFIG} says")
    with seeded(0):  # the weights drawn here are overwritten; the caller's generator is not to notice
        model = build(model_config)
    model.load_state_dict(_read_weights(folder, model))
    model.eval()
    metrics = _read_metrics(folder)
    return Run(
        model=model,
        config=model_config,
        vocabulary=vocabulary,
        labels=labels,
        data=data,
        settings=settings,
        metrics=metrics,
        history=_read_history(folder, metrics["epochs"]),
    )


def _is_run(folder: Path) -> bool:
    try:
        _read_config(folder)
    except (DataError, FileError):
        return False
    return True


def _write(run: Run, folder: Path) -> None:
    config = {
        "format": _FORMAT,
        "version": _VERSION,
        "data": run.data,
        "labels": list(run.labels),
        "model": run.config.model_dump(),
        "training": run.settings.model_dump(),
    }
    (folder / _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / _METRICS).write_text(json.dumps(dict(run.metrics), indent=2) + "\n", encoding="utf-8")
    history = "".join(json.dumps(asdict(epoch)) + "\n" for epoch in run.history)
    (folder / _HISTORY).write_text(history, encoding="utf-8")
    run.vocabulary.save(folder / _VOCABULARY)
    weights = {name: value.detach().cpu().contiguous() for name, value in run.model.state_dict().items()}
    # not save_file, which lets only the owner read what it writes
    (folder / _WEIGHTS).write_bytes(to_bytes(weights))


def _present(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise DataError(f"{folder}: the run folder lacks {name}; expected it beside {_CONFIG}")
    return path


def _parse(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise DataError(f"{path}: expected whole JSON; {error}") from None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected UTF-8 text; byte {error.start} is not") from None


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / _CONFIG
    if not path.is_file():
        raise DataError(f"{folder} is no run folder; expected a folder with {_CONFIG} in it")
    config = _parse(path, _read_text(path))
    if not isinstance(config, dict) or config.get("format") != _FORMAT:
        raise DataError(f'{path} is not ours; expected "format": "{_FORMAT}"')
    if config.get("version") != _VERSION:
        raise DataError(f"{path} has version {config.get('version')!r}; expected {_VERSION}")
    return config


def _read_weights(folder: Path, model: nn.Module) -> dict[str, Tensor]:
    """The weights, once they are known to be those of this model."""
    path = _present(folder, _WEIGHTS)
    try:
        weights: dict[str, Tensor] = load_file(path)
    except SafetensorError as error:
        raise DataError(f"{path}: truncated or no safetensors file; {error}") from None
    expected = model.state_dict()
    if missing := sorted(expected.keys() - weights.keys()):
        raise DataError(f"{path}: lacks {', '.join(missing)}; expected all weights that {_CONFIG} implies")
    if extra := sorted(weights.keys() - expected.keys()):
        raise DataError(f"{path}: unknown weights {', '.join(extra)}; expected those that {_CONFIG} implies")
    for name, value in weights.items():
        if value.shape != expected[name].shape:
            raise DataError(f"{path}: {name} has shape {tuple(value.shape)}; expected {tuple(expected[name].shape)}")
        if not torch.isfinite(value).all():
            raise DataError(f"{path}: {name} holds NaN or infinity; expected finite numbers")
    return weights


def _read_metrics(folder: Path) -> dict[str, float]:
    path = _present(folder, _METRICS)
    metrics = _parse(path, _read_text(path))
    if not isinstance(metrics, dict) or not all(isinstance(value, int | float) for value in metrics.values()):
        raise DataError(f"{path}: expected names and numbers")
    if "epochs" not in metrics:
        raise DataError(f"{path}: expected the number of epochs among {', '.join(metrics) or 'the metrics'}")
    return metrics


def _read_history(folder: Path, epochs: float) -> tuple[Epoch, ...]:
    path = _present(folder, _HISTORY)
    history = []
    for number, line in enumerate(_read_text(path).splitlines(), start=1):
        try:
            history.append(Epoch(**_parse(path, line)))
        except TypeError:
            raise DataError(f"{path}:{number}: expected an epoch's record, found {line[:40]!r}") from None
    if len(history) != epochs:
        raise DataError(f"{path}: expected one line for each of the {epochs} epochs, found {len(history)}")
    return tuple(history)
