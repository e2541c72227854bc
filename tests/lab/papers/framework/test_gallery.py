"""The gallery: figures that are there, links that lead to them, and nothing of what was not run."""

from __future__ import annotations

import re

import pytest

from unrolled.lab.papers.framework.experiment import Experiment, Report, Trial
from unrolled.lab.papers.framework.figure_style import grid
from unrolled.lab.papers.framework.findings import fingerprint
from unrolled.lab.papers.framework.gallery import draw_gallery
from unrolled.lab.papers.framework.result_store import Archive
from unrolled.lab.papers.framework.runner import run_experiment
from unrolled.lab.papers.framework.table import Table

pytest.importorskip("matplotlib", reason="figures need the extra [figures]")


class Lines(Experiment):
    """Draws the number it is given."""

    name = "drawing/lines"
    title = "Lines"
    source = "ours"
    figures = ("lines", "more-lines")

    def trials(self, scale):
        return [Trial("one", {"height": {"smoke": 1, "cpu": 2, "paper": 3}[scale]})]

    def run(self, trial, _bench):
        return {"height": trial.settings["height"]}

    def report(self, results, _scale):
        def draw():
            figure, (panel,) = grid()
            panel.plot([0, results[0]["height"]])
            return figure

        return Report([Table("lines", ("a",), [("b",)])], dict.fromkeys(self.figures, draw))


class Words(Lines):
    """Has nothing to draw."""

    name = "drawing/words"
    title = "Words"
    figures = ()


class Missing(Lines):
    """Is not run."""

    name = "drawing/missing"
    title = "Missing"


@pytest.fixture
def archive(tmp_path):
    archive = Archive(tmp_path / "results")
    results = run_experiment(Lines(), "cpu", archive, command="c")
    (archive.folder / "drawing" / "lines.md").write_text(
        f"<!-- fingerprint: cpu {fingerprint(Lines(), results)} -->\n- The line is 2 high.\n- It is straight.\n"
    )
    run_experiment(Words(), "cpu", archive, command="c")
    run_experiment(Missing(), "smoke", archive, command="c")
    return archive


def page_of(archive, tmp_path):
    page, figures = tmp_path / "docs" / "gallery.md", tmp_path / "docs" / "figures"
    experiments = [Lines(), Words(), Missing()]
    return page, draw_gallery(experiments, archive, ["cpu", "paper"], page, figures, tmp_path / "RESULTS.md")


def test_every_figure_stands_on_the_page_with_its_command_and_its_first_finding(archive, tmp_path):
    page, text = page_of(archive, tmp_path)
    links = re.findall(r"!\[Lines: [\w-]+\]\((.+)\)", text)
    assert links == ["figures/lines.png", "figures/more-lines.png"]
    for link in links:
        assert (page.parent / link).read_bytes().startswith(b"\x89PNG")
    assert "(../RESULTS.md)" in text
    assert "## Lines" in text
    assert "The line is 2 high." in text
    assert "It is straight." not in text
    assert "`unrolled reproduce drawing/lines --scale cpu --figures " in text
    assert "Words" not in text
    assert "Missing" not in text


def test_the_larger_scale_is_shown_as_soon_as_it_was_run(archive, tmp_path):
    run_experiment(Lines(), "paper", archive, command="c")
    _, text = page_of(archive, tmp_path)
    assert "The line is" not in text  # the findings speak of the smaller scale
    assert "--scale paper" in text
    assert "--scale cpu" not in text
