"""The losses during a training, and the loss on dev after each epoch."""

from __future__ import annotations

import json
from typing import Any

from unrolled.lab.training.logs import LOG
from unrolled.lab.training.run_folder import Run

__all__ = ["loss_curves"]


def loss_curves(run: Run) -> dict[str, Any]:
    """Read the losses from a run's log, in JSON types.

    Returns:
        ``steps`` and ``losses``: one for each logged step, the mean since the one before. ``epochs``: the steps at
        which an epoch ended, with ``training``, its mean loss, and ``dev``, the loss on dev.
    """
    lines = map(json.loads, (run.folder / LOG).read_text(encoding="utf-8").splitlines())
    steps = [line for line in lines if "best" not in line]  # the others sum an epoch up
    return {
        "steps": [line["step"] for line in steps],
        "losses": [line["loss"] for line in steps],
        "epochs": [epoch.step for epoch in run.history],
        "training": [epoch.loss for epoch in run.history],
        "dev": [epoch.dev["loss"] for epoch in run.history],
    }
