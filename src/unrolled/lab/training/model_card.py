"""Model cards: what a trained model is, on a page of Markdown.

Source:
    Mitchell et al. (2019), Model Cards for Model Reporting, arXiv:1810.03993, from which the order is taken.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

from unrolled.lab.settings import Settings
from unrolled.lab.training.run_folder import RunConfig
from unrolled.lab.training.task import Metric

__all__ = ["command", "model_card"]


def model_card(plan: RunConfig, metrics: Mapping[str, float], epochs: int) -> str:
    """Write the card of a run."""
    task = plan.task
    best = f"the epoch that was best on dev, {metrics['best_epoch']:.0f} of {epochs}"
    lines = [
        f"# {task.name}: {_plain(plan.data.title)}",
        "",
        f"A model for {task.description}: {metrics['parameters']:,.0f} parameters, trained by unrolled "
        f"{version('unrolled')} on {_plain(', '.join(plan.data.data))}. The weights are those of {best}.",
        "",
        "## How well it does",
        "",
        "| measure | dev | test | what is counted |",
        "|---|---:|---:|---|",
        *(_row(each, metrics) for each in task.metrics),
        "",
        "Dev chose the epoch; test was looked at once. The figures are of one training, with one seed.",
        "",
        "## What it learned from",
        "",
        "| split | examples |",
        "|---|---:|",
        *(f"| {name} | {size:,} |" for name, size in plan.sizes.items()),
        "",
        "It knows what these hold and nothing else: expect it to do worse on other kinds of text. Whoever passes it on "
        "minds the licence of the data.",
        "",
        "## What it is made of, and how it was trained",
        "",
        *_table("model", task.architecture),
        "",
        *_table("training", plan.settings),
        "",
        f"{metrics['steps']:,.0f} steps in {metrics['seconds']:,.0f} s by {plan.processes} "
        f"process{'es' if plan.processes > 1 else ''}. To train it again:",
        "",
        *_code(command(plan)),
        "",
        "## How to use it",
        "",
        "Where this folder is called `run`, on the command line and in Python:",
        "",
        *_code("unrolled evaluate run"),
        "",
        *_code(
            "from pathlib import Path\n\nfrom unrolled.lab.training.run_folder import load_run\n\n"
            'run = load_run(Path("run"))\nrun.model, run.task, run.metrics',
            "python",
        ),
        "",
    ]
    return "\n".join(lines)


def command(plan: RunConfig) -> str:
    """Write the command line that trains a run again."""
    words = ["unrolled", "train", plan.task.name]
    for settings, own in ((plan.data, {}), (plan.task.architecture, {}), (plan.settings, plan.task.training_defaults)):
        defaults = {
            name: field.get_default(call_default_factory=True) for name, field in type(settings).model_fields.items()
        }
        for name, usual in {**defaults, **own}.items():
            value = getattr(settings, name)
            if value != usual:
                words += _flag("option" if name == "options" else name.replace("_", "-"), value)
    return shlex.join(words)


def _flag(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, Mapping):
        value = tuple(f"{key}={str(each).lower() if isinstance(each, bool) else each}" for key, each in value.items())
    if isinstance(value, tuple):
        return [f"--{name}", *value]
    return [f"--{name}", str(value)]


def _row(measure: Metric, metrics: Mapping[str, float]) -> str:
    dev, test = (measure.format(metrics[f"{split}_{measure.name}"]) for split in ("dev", "test"))
    return f"| {measure.name} | {dev} | {test} | {_plain(measure.description)} |"


def _table(title: str, settings: Settings) -> Iterable[str]:
    yield f"| {title} | |"
    yield "|---|---|"
    for name, value in settings.model_dump(mode="json").items():
        yield f"| {name} | {_plain(str(value))} |"


def _plain(text: str) -> str:
    """Show text as it is: one line, and nothing in it is Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&$])", r"\\\1", " ".join(text.split()))


def _code(text: str, language: str = "") -> list[str]:
    """A block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", text, fence]
