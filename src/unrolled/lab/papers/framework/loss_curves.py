"""The curves of a training: what it cost while it was learned, and what dev cost after each epoch."""

from __future__ import annotations

import json
from typing import Any

from unrolled.lab.training.logs import LOG
from unrolled.lab.training.run_folder import Run

__all__ = ["curves"]


def curves(run: Run) -> dict[str, Any]:
    """Read the losses off a run's log.

    Args:
        run: of a task that measures its loss on dev.

    Returns:
        In JSON's types: ``steps`` and ``losses``, one for every so many steps as the run logged, each the mean since
        the one before it; ``epochs``, the steps at which an epoch ended, with ``training``, its mean loss, and
        ``dev``, the loss on dev.
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
