"""Every task on its real data, by the command in docs/laboratory.md: the metric reached and the time it takes.

This is no table of a paper: the goals are this library's own, for sizes that train on two cores in the stated minutes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.load import load_dataset
from unrolled.lab.papers.analyses.expansion_errors import largest_remainder
from unrolled.lab.papers.analyses.sentiment_networks import GLOVE
from unrolled.lab.papers.framework.corpora import SMALL
from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale, Trial, TrialSetup
from unrolled.lab.papers.framework.synthetic_corpora import SYNTHETIC
from unrolled.lab.papers.framework.table import MISSING, Number, Table
from unrolled.lab.papers.framework.trial_training import full_settings, run_metrics, train_model
from unrolled.lab.tasks import TASKS

__all__ = ["TaskFigures"]

_QUICK: dict[str, Any] = {"epochs": 2, "batch": 8}
_ACCOUNTS, _REMAINDER = 200, 1e-4  # number of explained texts, and the largest remainder as a share of the logit


@dataclass(frozen=True)
class _Goal:
    """A task, the command that trains it, and the goal for its metric, if there is one."""

    task: str
    data: str
    measure: str
    goal: float | None = None
    higher: bool = True
    minutes: float | None = None
    """The longest time on two cores, if there is such a goal."""
    model: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    vectors: bool = False
    """Whether it starts from GloVe's vectors."""
    opened: bool = False
    """Whether logits of test texts are explained afterwards, to measure the remainder."""

    @property
    def command(self) -> str:
        """The equivalent command line."""
        words = ["unrolled", "train", self.task, "--data", self.data]
        for name, value in {**self.model, **self.training}.items():
            flag = f"--{name.replace('_', '-')}"
            words += [flag] if value is True else [f"--no-{flag[2:]}"] if value is False else [flag, str(value)]
        if self.vectors:
            words += ["--vectors", f"{GLOVE}.xz"]
        return shlex.join(words)

    def claims(self, value: float, minutes: float, remainder: float | None) -> Iterator[tuple[str, bool]]:
        """List the goals, and whether each is reached."""
        if self.goal is not None:
            side = "at least" if self.higher else "at most"
            reached = value >= self.goal if self.higher else value <= self.goal
            yield f"`{self.command}`: test {self.measure} {side} {self.goal:g}", reached
        if self.minutes is not None:
            yield f"`{self.command}`: at most {self.minutes:g} minutes of training", minutes <= self.minutes
        if remainder is not None:
            yield f"`{self.command}`: remainder of the logit at most {_REMAINDER:g}", remainder <= _REMAINDER

    def settings(self, seed: int = 0) -> dict[str, Any]:
        """Give all settings, the task's defaults included, so that a change of a default is a new trial."""
        full = full_settings(self.task, self.model, {**self.training, "seed": seed})
        return {
            "command": self.command,
            "seed": seed,
            "architecture": full["model"],
            "training": full["training"],
        }


_GOALS = (
    _Goal("classify", "sst2", "accuracy", 0.85, minutes=15, opened=True),
    # Chosen on dev among four: a constant rate, or a decaying one with last state, mean pooling, or twice the units.
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
    """A trial is one training."""

    name = "tasks/figures"
    title = "Every task, by its command"
    source = "our own goals, set in advance; a task's default settings except for those in its command, one run each"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the trainings; at scale smoke one for each task, on generated data."""
        if scale == "smoke":
            return [Trial(task, {"task": task, "seed": 0}) for task in sorted({goal.task for goal in _GOALS})]
        return [Trial(goal.command, goal.settings()) for goal in _GOALS]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, and measure on test."""
        seed = int(trial.settings["seed"])
        if "task" in trial.settings:
            task = TASKS.get(str(trial.settings["task"]))
            corpus = SYNTHETIC[task.kind](SMALL, seed)
            small = {"hidden": 8, "embedding": 8}
            return run_metrics(train_model(setup, task.name, corpus, small, {**_QUICK, "seed": seed}))
        goal = next(goal for goal in _GOALS if goal.command == trial.settings["command"])
        corpus = load_dataset(goal.data, TASKS.get(goal.task).kind, setup.data)
        training: dict[str, Any] = {**goal.training, "seed": seed}
        if goal.vectors:
            training["vectors"] = find_file(GLOVE, setup.data)
        run = train_model(setup, goal.task, corpus, goal.model, training)
        return {
            **run_metrics(run),
            **({"remainder": largest_remainder(run, corpus.test[:_ACCOUNTS])} if goal.opened else {}),
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare what was reached with the goals."""
        if scale == "smoke":
            sizes: list[list[str | Number]] = [
                [result.trial.label, Number([result["parameters"]], digits=0)] for result in results
            ]
            return Report([Table("Generated data: every task trains", ("task", "parameters"), sizes)])
        rows: list[list[str | Number]] = []
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
                    MISSING if remainder is None else f"{remainder:.1e}",
                ]
            )
        columns = (
            "command", "metric", "reached (goal)", "minutes of training", "parameters, fixed ones included",
            "remainder / logit",
        )  # fmt: skip
        title = (
            "Seed 0, epochs chosen on dev, test measured once; "
            f"the remainder is the largest of {_ACCOUNTS} test texts opened by path"
        )
        return Report([Table(title, columns, rows)])

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """List the goals."""
        claims = dict[str, bool]()
        for result in results:
            for goal in _GOALS:
                if goal.command == result.trial.settings.get("command"):
                    value, minutes = float(result[f"test_{goal.measure}"]), result["seconds"] / 60
                    claims |= goal.claims(value, minutes, result.values.get("remainder"))
        return claims
