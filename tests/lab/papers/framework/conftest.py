"""Experiments for tests: they square numbers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from unrolled.lab.papers.framework.experiment import Experiment, Report, Trial
from unrolled.lab.papers.framework.findings import fingerprint
from unrolled.lab.papers.framework.result_store import ResultStore
from unrolled.lab.papers.framework.table import Number, Table


class Squares(Experiment):
    """Squares numbers; trial 3 fails if asked to. The first number has a published square."""

    name = "arithmetic/squares"
    title = "Squares"
    source = "ours"

    def __init__(self, broken=False):
        self.broken = broken
        self.ran = []

    def trials(self, scale):
        return [Trial(f"n={n}", {"n": n, "seed": 0}) for n in range(1, 4 if scale == "smoke" else 9)]

    def run(self, trial, setup):
        assert setup.folder.is_dir()
        setup.log("squaring")
        if self.broken and trial.settings["n"] == 3:
            raise RuntimeError("stopped")
        self.ran.append(trial.settings["n"])
        return {"square": trial.settings["n"] ** 2}

    def report(self, results, _scale):
        rows = [(result.trial.label, Number([result["square"]], theirs=4.0)) for result in results]
        return Report([Table("squares", ("n", "square"), rows)], dict.fromkeys(self.figures, _line))

    figures = ()


class Drawn(Squares):
    """Has two figures."""

    name = "arithmetic/drawn"
    title = "Drawn"
    figures = ("lines", "more-lines")


class Cubes(Squares):
    """Is not run in tests."""

    name = "arithmetic/cubes"
    title = "Cubes"


def _line():
    from unrolled.lab.papers.framework.figure_style import grid

    figure, (panel,) = grid()
    panel.plot([0, 1])
    return figure


def _write_findings(store, experiment, scale, results, text):
    """Write findings that speak of these results."""
    path = store.folder / f"{experiment.name}.md"
    path.write_text(f"<!-- fingerprint: {scale} {fingerprint(experiment, results)} -->\n{text}\n")


@pytest.fixture
def arithmetic():
    """The experiments above."""
    return SimpleNamespace(Squares=Squares, Drawn=Drawn, Cubes=Cubes, items=(Squares(), Drawn(), Cubes()))


@pytest.fixture
def write_findings():
    """Write findings that speak of some results."""
    return _write_findings


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return ResultStore(tmp_path / "results")
