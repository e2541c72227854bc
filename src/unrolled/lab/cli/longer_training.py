"""The command that trains a network once more, for longer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unrolled.lab.training.settings import TrainingSettings

__all__ = ["longer_training"]


def longer_training(words: Sequence[str], settings: TrainingSettings, folder: Path) -> str:
    """Write the command that trains once more: four times the epochs or steps, and more patience.

    Adam's learning rate is three times as high, up to 0.01. The run is another one, in a folder that does not exist.
    """
    changed = {"--epochs": f"{4 * settings.epochs}", "--patience": f"{max(10, 3 * settings.patience)}"}
    if settings.optimiser.startswith("adam") and settings.lr < 0.01:
        changed["--lr"] = f"{min(3 * settings.lr, 0.01):g}"
    if settings.steps is not None:
        changed["--steps"] = f"{4 * settings.steps}"
    changed["--out"] = f"{folder}-longer"
    while Path(changed["--out"]).exists():
        changed["--out"] += "-longer"
    kept = [word for word in _without(set(changed), words) if word != "--force"]
    return shlex.join(["unrolled", "train", *kept, *(word for pair in changed.items() for word in pair)])


def _without(options: set[str], words: Sequence[str]) -> Iterator[str]:
    """Leave out some options that have a value."""
    value_follows = False
    for word in words:
        if value_follows:
            value_follows = False
            continue
        name, equals, _ = word.partition("=")
        value_follows = name in options and not equals
        if name not in options:
            yield word
