"""Model cards: a page of Markdown that describes a trained model.

Source:
    Mitchell et al. (2019), Model Cards for Model Reporting, arXiv:1810.03993, for the order of the sections.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from unrolled.lab.settings import Settings
from unrolled.lab.training.run_config import RunConfig
from unrolled.lab.training.task import Metric

__all__ = ["command", "model_card"]


def model_card(config: RunConfig, metrics: Mapping[str, float], epochs: int) -> str:
    """Write the model card of a run, as Markdown; text of the user's is escaped."""
    task, config = config.task, _for_others(config)
    best = f"the epoch that was best on dev, {metrics['best_epoch']:.0f} of {epochs}"
    lines = [
        f"# {task.name}: {_escaped(config.data.title)}",
        "",
        f"A model for {task.description}: {metrics['parameters']:,.0f} parameters, trained by unrolled "
        f"{config.environment.versions['unrolled']} on {_escaped(', '.join(config.data.data))}. "
        f"The weights are those of {best}.",
        "",
        "## Results",
        "",
        "| metric | dev | test | definition |",
        "|---|---:|---:|---|",
        *(_row(each, metrics) for each in task.metrics),
        "",
        "The epoch was chosen on dev; test was used once. The figures are of one training run, with one seed.",
        "",
        "## Training data",
        "",
        "| split | examples |",
        "|---|---:|",
        *(f"| {name} | {size:,} |" for name, size in config.sizes.items()),
        "",
        "Expect worse results on other kinds of text. Check the licence of the data before you distribute the model.",
        "",
        "## Architecture and training settings",
        "",
        *_table("model", task.architecture),
        "",
        *_table("training", config.settings),
        "",
        f"{metrics['steps']:,.0f} steps in {metrics['seconds']:,.0f} s by {config.processes} "
        f"process{'es' if config.processes > 1 else ''}. To train it again, in the folder of its files:",
        "",
        *_code(command(config)),
        "",
        "## Usage",
        "",
        "If this folder is called `run`, on the command line and in Python:",
        "",
        *_code("unrolled evaluate run"),
        "",
        *_code(
            'import unrolled\n\nrun = unrolled.load("run")\nrun.model, run.task, run.metrics',
            "python",
        ),
        "",
    ]
    return "\n".join(lines)


def command(config: RunConfig) -> str:
    """Write the command line that trains a run again, without folders and the settings that are defaults."""
    config = _for_others(config)
    words = ["unrolled", "train", config.task.name]
    for settings, own in (
        (config.data, {}),
        (config.task.architecture, {}),
        (config.settings, config.task.training_defaults),
    ):
        defaults = {
            name: field.get_default(call_default_factory=True) for name, field in type(settings).model_fields.items()
        }
        for name, usual in {**defaults, **own}.items():
            value = getattr(settings, name)
            if value != usual:
                words += _flag("option" if name == "options" else name.replace("_", "-"), value)
    return shlex.join(words)


def _for_others(config: RunConfig) -> RunConfig:
    """Name files without the folders of this machine, which are no business of those who get the model."""
    settings = config.settings.renamed(lambda name: Path(name).name)
    return replace(config, data=config.data.without_folders(), settings=settings)


def _flag(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, Mapping):
        value = tuple(f"{key}={str(each).lower() if isinstance(each, bool) else each}" for key, each in value.items())
    if isinstance(value, tuple):
        return [f"--{name}", *value]
    return [f"--{name}", str(value)]


def _row(metric: Metric, metrics: Mapping[str, float]) -> str:
    dev, test = (metric.format(metrics[f"{split}_{metric.name}"]) for split in ("dev", "test"))
    return f"| {metric.name} | {dev} | {test} | {_escaped(metric.description)} |"


def _table(title: str, settings: Settings) -> Iterable[str]:
    yield f"| {title} | |"
    yield "|---|---|"
    for name, value in settings.model_dump(mode="json").items():
        yield f"| {name} | {_escaped(str(value))} |"


def _escaped(text: str) -> str:
    """Escape Markdown and HTML, and put the text on one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&$])", r"\\\1", " ".join(text.split()))


def _code(text: str, language: str = "") -> list[str]:
    """Return a code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", text, fence]
