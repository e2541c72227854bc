"""Which method finds the words that decide an answer, where those words are known?

The tasks are functions of a text whose reason, the smallest set of words that fixes the answer, is unique. Some
networks have weights written by hand, so how they compute the answer is known as well; others are LSTMs and GRUs of 32
units that learned a task from random texts, three seeds each. A network with fewer than 99% right answers is left out.
Methods rank words by their attribution to the right answer. All methods explain the same texts, which the network
answers right.

Source:
    Our own question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean, quantiles
from typing import TYPE_CHECKING, Any

from unrolled.lab.papers.analyses.faithfulness.scores import show_difference
from unrolled.lab.papers.analyses.known_truth.compiled_networks import COMPILED
from unrolled.lab.papers.analyses.known_truth.truth_agreement import (
    LEARNED,
    accuracy,
    explained_cases,
    find_reasons,
    learn_task,
    task_differences,
)
from unrolled.lab.papers.analyses.known_truth.truth_tasks import TASKS
from unrolled.lab.papers.framework.bootstrap import mean_over_groups
from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.figure_style import COLOURS, from_to, grid, legend_below, write_count
from unrolled.lab.papers.framework.table import MISSING, Number, Table
from unrolled.report.formatting import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

__all__ = ["NOT_LEARNED", "KnownTruth"]

_METHODS = (
    "secant", "path", "shares", "shares(0.5)", "operating", "gates", "mean(operating, path)", "zero", "activation",
    "account", "account, shares", "integrated gradients, 32", "gradient x input", "DeepLift", "LRP",
    "contextual decomposition", "occlusion by <unk>", "random",
)  # fmt: skip
"""A frozen list."""
NOT_LEARNED = "first word of 40"
"""Not learned by these networks in the steps of scale cpu, so it comes last."""
_SHOWN = ("secant", "shares", "operating", "gates", "account", "integrated gradients, 32", "DeepLift",
          "occlusion by <unk>", "random")  # fmt: skip
_MEASURES = ("first", "set", "first by size", "set by size")
_COMPARED = tuple(
    ("shares", each)
    for each in ("secant", "shares(0.5)", "account, shares", "integrated gradients, 32", "DeepLift", "LRP",
                 "occlusion by <unk>")
) + tuple(("secant", each) for each in ("path", "integrated gradients, 32", "DeepLift"))  # fmt: skip
"""What is compared task by task, on the networks that have both."""
_LEVEL = 0.005
"""Of a task's cases; a smaller difference is a case or two in one network."""
_LEARNED_TASKS = (
    "keyword", "two words in any order", "bigram", "two words in order", "negation", "first word of 12",
    "last write", "word after a mark", "associative recall", "at least three", "parity", "first equals last",
)  # fmt: skip
_CELLS = {"lstm": "LSTM", "gru": "GRU"}
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"hidden": 8, "steps": 200, "cases": 20, "seeds": 1},
    "cpu": {"hidden": 32, "steps": 4000, "cases": 300, "seeds": 3},
    "paper": {"hidden": 128, "steps": 20_000, "cases": 2000, "seeds": 10},
}
"""``steps``: the largest number of training steps; ``cases``: texts that are drawn to be explained; those that
the network answers wrongly are left out."""
_SMOKE = ("keyword",)
_SMOKE_COMPILED = ("counter, relu", "automaton of parity", "memory, LSTM", "stack, Dyck-RNN")


class KnownTruth(Experiment):
    """A trial is one network with all methods."""

    name = "ours/known-truth"
    title = "Which method finds the words that decide, where they are known"
    source = "our own question"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the networks written by hand, then those that learn, seed by seed."""
        sizes = dict(_SIZES[scale])
        seeds, cases, smoke = sizes.pop("seeds"), sizes.pop("cases"), scale == "smoke"
        common = {"methods": list(_METHODS), "cases": cases}
        trials = [
            Trial(name, {"network": name, "task": COMPILED[name][0], **common})
            for name in (_SMOKE_COMPILED if smoke else _COMPILED_NAMES)
        ]
        for seed, task, cell in product(range(seeds), _SMOKE if smoke else (*_LEARNED_TASKS, NOT_LEARNED), _CELLS):
            settings = {"network": cell, "task": task, **sizes, **common, "seed": seed}
            trials.append(Trial(f"{_CELLS[cell]}, {task}, seed {seed}", settings))
        return sorted(trials, key=lambda trial: trial.settings["task"] == NOT_LEARNED)

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Build or train the network, and let every method look for the reasons."""
        chosen = trial.settings
        task, seed = TASKS[chosen["task"]], chosen.get("seed", 0)
        if chosen["network"] in COMPILED:
            model = COMPILED[chosen["network"]][1]()
            right = accuracy(model, task, seed, reasons_only=True)
        else:
            model = learn_task(task, chosen["network"], chosen["hidden"], chosen["steps"], seed)
            right = accuracy(model, task, seed)
        setup.log(f"{trial.label}: {100 * right:.1f}% right answers")
        if right < LEARNED:
            return {"accuracy": right, "learned": False}
        explained, reasons = explained_cases(model, task, chosen["cases"], seed)
        found = {method: find_reasons(method, explained, reasons) for method in chosen["methods"]}
        measured = {method: values for method, values in found.items() if not isinstance(values, str)}
        missing = {method: why for method, why in found.items() if isinstance(why, str)}
        return {
            "accuracy": right,
            "learned": True,
            "cases": len(reasons),
            "reason": round(float(reasons.sum(dim=1).double().mean()), 3),
            "methods": measured,
            "missing": missing,
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate the shares of cases by method, and by task."""
        name = "ours-known-truth"
        return Report(list(_tables(results)), {name: partial(_draw, results)}, {name: _CAPTION})


_COMPILED_NAMES = (
    "counter, relu", "counter, LSTM", "automaton of parity", "automaton of a bigram", "automaton of an order",
    "automaton of the last write", "automaton of the first word", "automaton of a mark", "memory, LSTM", "memory, GRU",
    "latch, GRU", "stack, Dyck-RNN", "shift register, memorising RNN",
)  # fmt: skip
"""A frozen list."""


def _is_compiled(result: Result) -> bool:
    return result.trial.settings["network"] in _COMPILED_NAMES


def _learned(results: Sequence[Result], compiled: bool) -> list[Result]:
    return [result for result in results if result["learned"] and _is_compiled(result) is compiled]


def _groups(results: Sequence[Result], compiled: bool) -> dict[str, list[Result]]:
    """Group the networks of which each counts once: those written by hand alone, those that learned by task."""
    name = "network" if compiled else "task"
    found: dict[str, list[Result]] = {}
    for result in _learned(results, compiled):
        found.setdefault(result.trial.settings[name], []).append(result)
    return found


def _mean(results: Sequence[Result], method: str, measure: str) -> float | None:
    values = [result["methods"][method][measure] for result in results if method in result["methods"]]
    return fmean(values) if values else None


def _of_groups(groups: Mapping[str, Sequence[Result]], method: str, measure: str) -> list[float]:
    """Give the mean of each group; none where a group has no network with this method."""
    means = [_mean(group, method, measure) for group in groups.values()]
    known = [value for value in means if value is not None]
    return known if len(known) == len(means) else []


def _over_groups(groups: Mapping[str, Sequence[Result]], method: str, measure: str) -> float | None:
    """Average over groups, each with the same weight; None where a group has no network with this method."""
    means = _of_groups(groups, method, measure)
    return fmean(means) if means else None


def _differences(groups: Mapping[str, Sequence[Result]]) -> Table | None:
    """Compare methods over the tasks of which at least two networks have both."""
    rows: list[Sequence[str | Number]] = []
    for one, other in _COMPARED:
        found = {measure: task_differences(groups.values(), one, other, measure) for measure in ("set", "set by size")}
        if all(found.values()):
            cells = (cell for each in found.values() for cell in _difference_cells(each))
            sizes = list(map(len, found["set"]))
            rows.append((f"{one} less {other}", *cells, str(len(sizes)), str(sum(sizes))))
    title = (
        "Networks that learned: share of cases in which the k highest words are the reason, of one method less that of "
        "another on the same networks, mean over the tasks of which two or more networks have both, with 95% intervals "
        "over trainings, not corrected for their number; above, below: tasks in which it differs by more than "
        f"{_LEVEL:g}"
    )
    columns = ("methods", *("set", "above", "below"), *("set by size", "above by size", "below by size"))
    return Table(title, (*columns, "tasks", "networks"), rows) if rows else None


def _difference_cells(groups: Sequence[Tensor]) -> tuple[str, str, str]:
    means = [float(each.mean()) for each in groups]
    above, below = sum(mean > _LEVEL for mean in means), sum(mean < -_LEVEL for mean in means)
    return show_difference(mean_over_groups(groups)), str(above), str(below)


def _show(value: float | None) -> str | Number:
    return MISSING if value is None else Number([value])


def _tables(results: Sequence[Result]) -> Iterator[Table]:
    by_hand, learned = _groups(results, True), _groups(results, False)
    if by_hand or learned:
        yield _shares(by_hand, learned)
    kinds = (("Networks written by hand", "network", by_hand), ("Networks that learned, by task", "task", learned))
    for title, name, groups in kinds:
        if groups:
            yield from _shares_of_groups(title, name, groups)
    if differences := _differences(learned):
        yield differences
    yield _accuracies(results)


def _shares(by_hand: Mapping[str, Sequence[Result]], learned: Mapping[str, Sequence[Result]]) -> Table:
    """Tabulate the means of all measures by method, over each kind of networks that there is."""
    kinds = {title: groups for title, groups in (("written by hand", by_hand), ("learned", learned)) if groups}
    rows: list[Sequence[str | Number]] = []
    for method in _METHODS:
        cells = [_show(_over_groups(groups, method, measure)) for groups in kinds.values() for measure in _MEASURES]
        if any(cell != MISSING for cell in cells):
            rows.append((method, *cells))
    count = sum(len(group) for group in learned.values())
    title = (
        "Share of cases whose highest word is in the reason (first), and whose k highest words are the reason of k "
        f"words (set); means over {len(by_hand)} networks written by hand, and over {len(learned)} tasks, "
        f"{count} networks; a dash where a method does not exist for all of them"
    )
    return Table(title, ("method", *(f"{kind}: {measure}" for kind, measure in product(kinds, _MEASURES))), rows)


def _shares_of_groups(title: str, name: str, groups: Mapping[str, Sequence[Result]]) -> Iterator[Table]:
    """Tabulate two measures of some methods, a row a group."""
    for measure, said in (("set", "the k highest words are the reason"), ("first", "the highest word is in it")):
        rows = [(each, *(_show(_mean(group, method, measure)) for method in _SHOWN)) for each, group in groups.items()]
        yield Table(f"{title}: share of cases in which {said}", (name, *_SHOWN), rows)


def _accuracies(results: Sequence[Result]) -> Table:
    rows: list[Sequence[str | Number]] = []
    trained = [result for result in results if not _is_compiled(result)]
    for task in dict.fromkeys(result.trial.settings["task"] for result in trained):
        for cell, name in _CELLS.items():
            if some := where(trained, task=task, network=cell):
                lowest = 100 * min(result["accuracy"] for result in some)
                rows.append((f"{task}, {name}", f"{sum(r['learned'] for r in some)} of {len(some)}", f"{lowest:.1f}"))
    for result in filter(_is_compiled, results):
        rows.append((result.trial.label, "by hand", f"{100 * result['accuracy']:.1f}"))
    return Table(
        f"Networks that learned their task (at least {100 * LEARNED:g}% right answers; the others are left out above)",
        ("network", "learned", "lowest accuracy, %"),
        rows,
    )


_CAPTION = (
    "a point is the mean over the networks written by hand, or over the tasks of those that learned, each with the "
    "same weight. Its line reaches from the first quartile of these to the third. It shows how much networks or tasks "
    "differ. It is not a confidence interval of the mean, and the mean may lie outside of it. Methods that do not "
    "exist for all of them are left out."
)


def _draw(results: Sequence[Result]) -> Figure:
    figure, panels = grid(1, 2, width=4.6, height=4.6)
    for panel, compiled in zip(panels, (True, False), strict=True):
        groups = _groups(results, compiled)
        found = {
            measure: {method: _of_groups(groups, method, measure) for method in _METHODS}
            for measure in ("set", "first")
        }
        kept = [method for method in _METHODS if all(values[method] for values in found.values())]
        places = range(len(kept))
        for colour, marker, apart, (measure, values) in zip(COLOURS, "os", (-0.15, 0.15), found.items(), strict=False):
            heights = [place + apart for place in places]
            for height, method in zip(heights, kept, strict=True):
                panel.plot(_quartiles(values[method]), [height] * 2, color=colour, linewidth=1)
            means = [fmean(values[method]) for method in kept]
            panel.plot(means, heights, marker, color=colour, label=f"the {measure}")
        panel.set_yticks(places, kept)
        panel.invert_yaxis()
        if drawn := [result for group in groups.values() for result in group]:
            texts = from_to({result["cases"] for result in drawn})
            write_count(panel, f"{counted(len(drawn), 'network')} of {texts} texts")
        panel.set(xlim=(-0.03, 1.03), xlabel="share of cases", title="by hand" if compiled else "learned")
    legend_below(figure, panels[0], 2)
    return figure


def _quartiles(values: Sequence[float]) -> list[float]:
    """Give the first quartile and the third."""
    first, _, third = quantiles(values, n=4, method="inclusive") if len(values) > 1 else 3 * [*values]
    return [first, third]
