"""Every task on its real data, by the command that the README shows: how good, in what time.

Not a table of any paper: the figures are those that this library sets itself, at sizes that train on two cores in the
minutes named.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unrolled.lab.data.load import load_dataset
from unrolled.lab.data.text_files import find_file
from unrolled.lab.papers.analyses.expansion_errors import largest_remainder
from unrolled.lab.papers.analyses.sentiment_networks import GLOVE
from unrolled.lab.papers.framework.experiment import Bench, Experiment, Report, Result, Scale, Trial
from unrolled.lab.papers.framework.synthetic_corpora import MADE_UP
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import figures, learn
from unrolled.lab.papers.framework.unique_splits import SMALL
from unrolled.lab.tasks import TASKS
from unrolled.lab.training.settings import TrainingSettings

__all__ = ["TaskFigures"]

_QUICK: dict[str, Any] = {"epochs": 2, "batch": 8}
_ACCOUNTS, _REMAINDER = 200, 1e-4  # texts opened, and the share of a logit that may be left over


@dataclass(frozen=True)
class _Goal:
    """A task, the command that learns it, and the figure to reach, if one was set."""

    task: str
    data: str
    measure: str
    goal: float | None = None
    higher: bool = True
    minutes: float | None = None
    """How long it may take on two cores, where that was asked, too."""
    model: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    vectors: bool = False
    """Whether it begins with GloVe's vectors."""
    opened: bool = False
    """Whether its network is opened afterwards, and the account of its test texts held against the logit."""

    @property
    def command(self) -> str:
        """The command line that does the same."""
        words = ["unrolled", "train", self.task, "--data", self.data]
        for name, value in {**self.model, **self.training}.items():
            flag = f"--{name.replace('_', '-')}"
            words += [flag] if value is True else [f"--no-{flag[2:]}"] if value is False else [flag, str(value)]
        if self.vectors:
            words += ["--vectors", f"{GLOVE}.xz"]
        return shlex.join(words)

    def claims(self, value: float, minutes: float, remainder: float | None) -> Iterator[tuple[str, bool]]:
        """List what was set as a goal, and whether it is reached."""
        if self.goal is not None:
            side = "at least" if self.higher else "at most"
            reached = value >= self.goal if self.higher else value <= self.goal
            yield f"`{self.command}`: test {self.measure} {side} {self.goal:g}", reached
        if self.minutes is not None:
            yield f"`{self.command}`: at most {self.minutes:g} minutes of training", minutes <= self.minutes
        if remainder is not None:
            yield f"`{self.command}`: remainder of the logit at most {_REMAINDER:g}", remainder <= _REMAINDER

    def settings(self, seed: int = 0) -> dict[str, Any]:
        """All that decides the outcome, the task's own defaults among it: when they change it is run anew."""
        kind = TASKS.get(self.task)
        training = TrainingSettings(**{**kind.training_defaults, **self.training, "seed": seed})
        return {
            "command": self.command,
            "seed": seed,
            "architecture": kind.Architecture(**self.model).model_dump(mode="json"),
            "training": training.model_dump(mode="json"),
        }


_GOALS = (
    _Goal("classify", "sst2", "accuracy", 0.85, minutes=15, opened=True),
    # Chosen on dev among four: at a constant rate; and falling so, with the last state, their mean, or twice the units.
    _Goal(
        "classify", "sst2", "accuracy", 0.85,
        minutes=15, model={"encoder": "lstm"}, training={"schedule": "linear", "epochs": 5}, opened=True,
    ),
    _Goal("classify", "ag_news", "accuracy", 0.85),
    _Goal("relate", "semeval2010", "f1", 0.60, vectors=True),
    _Goal("rank", "wikiqa", "mrr", 0.60, vectors=True),
    _Goal("tag", "conll2003", "f1", 0.80, vectors=True),
    _Goal("classify", "imdb", "accuracy", 0.86, model={"pooling": "mean"}),
    _Goal("translate", "multi30k", "bleu", 20.0),
    _Goal("lm", "ptb", "perplexity", 115.0, higher=False, minutes=30, model={"dropout": 0.3}, training={"epochs": 6}),
    _Goal("chars", "ptb-chars", "bpc", 1.55, higher=False, minutes=45, training={"epochs": 6}),
    _Goal("regress", "sst-regression", "pearson"),
    _Goal("brackets", "dyck", "wcpa", 1.0),
)  # fmt: skip


class TaskFigures(Experiment):
    """One training a trial."""

    name = "tasks/figures"
    title = "Every task, by its command"
    source = "our own goals, set before; a task's own settings but for what its command says, one run each"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the trainings; made-up data of each task's kind at scale smoke."""
        if scale == "smoke":
            return [Trial(task, {"task": task, "seed": 0}) for task in TASKS.names()]
        return [Trial(goal.command, goal.settings()) for goal in _GOALS]

    def run(self, trial: Trial, bench: Bench) -> Mapping[str, Any]:
        """Train, and measure on test."""
        seed = int(trial.settings["seed"])
        if "task" in trial.settings:
            task = TASKS.get(str(trial.settings["task"]))
            corpus = MADE_UP[task.kind](SMALL, seed)
            small = {"hidden": 8, "embedding": 8}
            return figures(learn(bench, task.name, corpus, small, {**_QUICK, "seed": seed}))
        goal = next(goal for goal in _GOALS if goal.command == trial.settings["command"])
        corpus = load_dataset(goal.data, TASKS.get(goal.task).kind, bench.data)
        training: dict[str, Any] = {**goal.training, "seed": seed}
        if goal.vectors:
            training["vectors"] = find_file(GLOVE, bench.data)
        run = learn(bench, goal.task, corpus, goal.model, training)
        return {
            **figures(run),
            **({"remainder": largest_remainder(run, corpus.test[:_ACCOUNTS])} if goal.opened else {}),
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Lay what was reached beside the goal."""
        if scale == "smoke":
            sizes: list[list[str | Number]] = [
                [result.trial.label, Number([result["parameters"]], digits=0)] for result in results
            ]
            return Report([Table("Made-up data: that every task trains", ("task", "parameters"), sizes)])
        rows: list[list[str | Number]] = []
        claims = dict[str, bool]()
        for result in results:
            goal = next(goal for goal in _GOALS if goal.command == result.trial.settings["command"])
            value = float(result[f"test_{goal.measure}"])
            remainder: float | None = result.values.get("remainder")
            share, minutes = goal.measure in {"accuracy", "f1", "wcpa"}, result["seconds"] / 60
            measure = Number([value], goal.goal, digits=2 if share else 3, percent=share)
            rows.append(
                [
                    f"`{goal.command}`",
                    f"test {goal.measure}",
                    measure,
                    Number([minutes], goal.minutes, digits=1),
                    Number([result["parameters"]], digits=0),
                    "–" if remainder is None else f"{remainder:.1e}",
                ]
            )
            claims |= goal.claims(value, minutes, remainder)
        columns = (
            "command",
            "measure",
            "reached (goal)",
            "minutes of training",
            "parameters",
            "remainder of the logit",
        )
        title = (
            "Seed 0, epochs chosen on dev, test measured once; "
            f"the remainder is the largest of {_ACCOUNTS} test texts opened by path"
        )
        return Report([Table(title, columns, rows)], claims=claims)
