"""Interpretable units: units of character models that detect position in a line, quotations, conditions, or depth.

The lecture shows, without numbers, units of LSTMs trained on War and Peace and on the Linux kernel: for the position
in a line, quotations, the condition of an ``if``, comments and strings, and depth. It says that most units have no
interpretation. There they were found by eye. Here every unit is correlated with every property, which is computed
exactly; the unit is chosen on dev and its correlation measured on test. The control is the same network before
training, with a unit chosen in the same way. The kernel's source is not included; Python's standard library replaces
it.

The figures show texts of our own, which no network was trained on. At scale cpu, networks are small and read 4 million
characters, so units as clear as those of a large network are not expected.

Source:
    CS 577, lecture 5, interpretation of trained LSTMs, after Karpathy, Johnson and Fei-Fei (2015), arXiv:1506.02078.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from unrolled.lab.data.corpus import Characters, Stream
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.metrics.area_under_curve import area_under_curve
from unrolled.lab.models.language_model import LanguageModel
from unrolled.lab.papers.analyses.text_figures import draw_text_heat_map
from unrolled.lab.papers.analyses.unit_selectivity import correlations, unit_values
from unrolled.lab.papers.cs577_lecture_5.cells_texts import TEXTS, CharacterText
from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.figure_style import grid
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import train_once
from unrolled.lab.tasks.chars import CharacterModelling, CharacterModelSettings
from unrolled.lab.training.rng_state import seeded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["InterpretableUnits", "load_network"]

_ENCODERS = {"lstm": "LSTM", "gru": "GRU"}
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {
        "seeds": 1, "hidden": 8, "embedding": 8, "bptt": 20, "steps": 30, "epochs": 1, "lr": 0.01,
        "columns": 8, "width": 60, "lead": 10,
    },
    # the lecture does not state the sizes of its networks, nor their training
    "cpu": {
        "seeds": 3, "hidden": 128, "embedding": 32, "bptt": 64, "steps": 2000, "epochs": 3, "lr": 0.004,
        "columns": 32, "width": 3000, "lead": 300,
    },
    "day": {
        "seeds": 3, "hidden": 256, "embedding": 64, "bptt": 100, "steps": 12_000, "epochs": 50, "lr": 0.002,
        "columns": 32, "width": 10_000, "lead": 300,
    },
    "paper": {
        "seeds": 3, "hidden": 512, "embedding": 64, "bptt": 100, "steps": 50_000, "epochs": 50, "lr": 0.002,
        "columns": 32, "width": 10_000, "lead": 300,
    },
}  # fmt: skip
"""Units are measured in ``columns`` parts of ``width`` characters, each after an unmeasured ``lead``."""
_HOURS = {True: 1.0, False: 0.05}
"""Estimated hours of a trained and of an untrained network at scale day, on one core."""
_BINARY = "inside"
_CLEAR = 0.5  # the least correlation of a unit that detects a property
_BEYOND = 0.1  # the least by which training must raise a unit's correlation
_CAPTION = (
    "the LSTM of the first seed, each unit with its own r; the table has means over the seeds. "
    "The sign of a unit is chosen on dev, so its r on test can be negative."
)

_SHOWN = {
    "python": (("inside a string or comment",), ("inside an if",), ("bracket depth", "block depth")),
    "prose": (("position in line",), ("inside quotes",)),
}
"""Five of the six properties for which the lecture shows a unit, by text; the sixth, the ends of some statements, is
not measured, and the others of the table are ours. Of a unit for depth it says both how much to indent and how many
braces to close."""


class InterpretableUnits(Experiment):
    """A trial is one network on one text, before or after training."""

    name = "cs577-lecture-5/cells"
    title = "Interpretable units: position, quotations, conditions, comments, depth"
    source = "CS 577, lecture 5, interpretation of trained LSTMs: coloured text without numbers"
    scales = tuple(SCALES)
    day_hours_by = ("trained", _HOURS)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List trained networks, each followed by its untrained control; the LSTM first."""
        sizes = dict(_SIZES[scale])
        return [
            Trial(
                f"{_ENCODERS[encoder]}, {text}, {'trained' if trained else 'untrained'}, seed {seed}",
                {
                    **sizes,
                    "smoke": scale == "smoke",
                    "text": text,
                    "encoder": encoder,
                    "trained": trained,
                    "seed": seed,
                },
            )
            for seed in range(sizes.pop("seeds"))
            for encoder in _ENCODERS
            for trained in (True, False)
            for text in TEXTS
        ]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, choose units on dev, measure them on test, and run the network on our own text."""
        chosen = trial.settings
        text = TEXTS[chosen["text"]]
        corpus = text.made_up() if chosen["smoke"] else text.read(setup)
        model, vocabulary, bpc = load_network(corpus, chosen, setup)
        read = partial(unit_values, model, vocabulary)
        dev, test = (_Measured.of(split, text, read, chosen) for split in (corpus.dev, corpus.test))
        fragment = read("\n" + text.fragment, 1)[1:, 0]
        found: dict[str, Any] = {}
        strongest = torch.zeros(fragment.shape[1], dtype=torch.float64)
        for name in text.names:
            on_dev, on_test = (correlations(measured.units, measured.properties[name]) for measured in (dev, test))
            strongest = torch.maximum(strongest, on_test.abs())
            unit = int(on_dev.abs().argmax())
            sign = -1.0 if on_dev[unit] < 0 else 1.0
            values, holds = (sign * test.units[:, unit]).tolist(), (test.properties[name] > 0).tolist()
            area = area_under_curve(values, holds) if _BINARY in name else None
            found[name] = {
                "unit": _name(unit, chosen),
                "chosen": sign * float(on_dev[unit]),
                "correlation": sign * float(on_test[unit]),
                "auc": area,
                "share": float((test.properties[name] > 0).double().mean()) if _BINARY in name else None,
                "drawn": [round(value, 4) for value in (sign * fragment[:, unit]).tolist()],
            }
        clear = float((strongest >= _CLEAR).double().mean())
        # the name of the corpus contains the version of Python's library
        return {"corpus": corpus.name, "bpc": bpc, "units": len(strongest), "clear": clear, "found": found}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare trained with untrained units, and draw our own text."""
        rows: list[Sequence[str | Number]] = []
        for text, about in TEXTS.items():
            for name in about.names:
                for encoder in _ENCODERS:
                    trained, untrained = (
                        where(results, text=text, encoder=encoder, trained=state) for state in (True, False)
                    )
                    if trained or untrained:
                        cells = (
                            Number([value for each in those if (value := each["found"][name][what]) is not None])
                            for those in (trained, untrained)
                            for what in ("correlation", "auc")
                        )
                        units = ", ".join(each["found"][name]["unit"] for each in trained) or "not run"
                        rows.append((f"{about.title}: {name}", _ENCODERS[encoder], units, *cells))
        columns = ("property", "network", "unit", "r", "AUC", "untrained: r", "untrained: AUC")
        title = "The unit with the largest correlation on dev (h hidden, c memory): correlation r and AUC on test"
        figures = {
            f"cs577-lecture-5-cells-{text}": partial(_draw, result, TEXTS[text])
            for text in TEXTS
            if (result := next(iter(where(results, text=text, encoder="lstm", trained=True)), None))
        }
        return Report([Table(title, columns, rows)], figures, dict.fromkeys(figures, _CAPTION))

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """The lecture: some cells of an LSTM follow a property of the text, and most follow none."""
        claims = {}
        for text, shown in _SHOWN.items():
            after, before = (where(results, text=text, encoder="lstm", trained=state) for state in (True, False))
            for names in shown if after and before else ():
                either = ", one of the two" if len(names) > 1 else ""
                claim = f"{TEXTS[text].title}: a unit detects: {' or '.join(names)}{either}"
                claims[claim] = any(_detected(after, before, name) for name in names)
        if trained := where(results, encoder="lstm", trained=True):
            most = max(each["clear"] for each in trained)
            claims[f"most cells follow none of the properties (at most {most:.0%} follow one)"] = most < 0.5
        return claims


def _detected(after: Sequence[Result], before: Sequence[Result], name: str) -> bool:
    """Say whether a unit follows a property, and more clearly than before the training."""
    learned, control = (fmean(each["found"][name]["correlation"] for each in those) for those in (after, before))
    return learned >= _CLEAR and learned >= control + _BEYOND


class _Measured(NamedTuple):
    """Units and properties at the same places."""

    units: Tensor
    """Shape (places, units)."""
    properties: dict[str, Tensor]
    """Each of shape (places,)."""

    @classmethod
    def of(
        cls, split: Stream, text: CharacterText, read: Callable[[str, int], Tensor], chosen: Mapping[str, Any]
    ) -> _Measured:
        """Measure parts that are spread over a text; the properties are those of the whole text."""
        whole = "".join(character for line in split for character in line)
        columns, lead, length = chosen["columns"], chosen["lead"], chosen["lead"] + chosen["width"]
        starts = torch.linspace(0, len(whole) - length, columns).long().tolist()
        units = read("".join(whole[start : start + length] for start in starts), columns)
        places = torch.tensor([list(range(start + lead, start + length)) for start in starts]).T.flatten()
        values_at = {name: values[places] for name, values in text.properties(whole).items()}
        return cls(units[lead:].flatten(0, 1), values_at)


def load_network(
    corpus: Characters, chosen: Mapping[str, Any], setup: TrialSetup
) -> tuple[LanguageModel, Vocabulary, float | None]:
    """Give the network, trained or untrained, its characters and, if trained, its bits per character on test."""
    model = {name: chosen[name] for name in ("encoder", "hidden", "embedding", "bptt")}
    if chosen["trained"]:
        training = {name: chosen[name] for name in ("steps", "epochs", "lr", "seed")}
        run = train_once(setup, "chars", corpus, model, training)
        assert isinstance(run.model, LanguageModel)
        assert isinstance(run.task, CharacterModelling)
        return run.model, run.task.vocabulary, float(run.metrics["test_bpc"])
    task = CharacterModelling.from_corpus(corpus, CharacterModelSettings(**model))
    with seeded(chosen["seed"]):  # as the engine does, so that these are the trained network's initial weights
        built = task.build()
    return built.eval(), task.vocabulary, None


def _name(unit: int, chosen: Mapping[str, Any]) -> str:
    memory = chosen["hidden"] if chosen["encoder"] == "lstm" else 0
    return f"c {unit}" if unit < memory else f"h {unit - memory}"


def _draw(result: Result, about: CharacterText) -> Figure:
    drawn = [name for name in about.names if name != "inside a comment"]  # an even number
    columns = 1 if len(drawn) < 4 else 2
    lines = about.fragment.split("\n")[:-1]
    width, height = max(map(len, lines)), len(lines)
    figure, panels = grid(-(-len(drawn) // columns), columns, width=0.085 * width, height=0.18 * height + 0.5)
    for panel in panels[len(drawn) :]:
        panel.set_axis_off()
    shown = None
    for panel, name in zip(panels, drawn, strict=False):
        found = result["found"][name]
        shown = draw_text_heat_map(panel, lines, found["drawn"])
        panel.set_title(f"{name}: {found['unit']}, r = {found['correlation']:.2f} on test")
    assert shown is not None
    bar = figure.colorbar(shown, ax=panels, location="bottom", shrink=0.4, aspect=40, pad=0.02)
    bar.set_ticks([0, 1], labels=["least", "most"])
    bar.set_label("value of the unit within this text, its sign chosen for a positive correlation on dev")
    return figure
