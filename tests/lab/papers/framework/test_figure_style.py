"""The common style of figures: letters of panels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from unrolled.lab.papers import EXPERIMENTS
from unrolled.lab.papers.framework.figure_style import (
    draw_box_pairs,
    draw_boxes,
    grid,
    save,
    seed_captions,
    write_seeds,
)
from unrolled.lab.papers.framework.result_store import ResultStore
from unrolled.lab.papers.framework.runner import collect


def titles(tmp_path: Path, rows: int, columns: int, change: Any = None) -> list[str]:
    kept: list[Any] = []

    def draw() -> Any:
        figure, panels = grid(rows, columns)
        if change is not None:
            change(figure, panels)
        kept.append(figure)
        return figure

    save(draw, tmp_path, "figure")
    return [axes.get_title(loc="left") for axes in kept[0].axes]


def test_several_panels_have_letters_and_one_has_none(tmp_path: Path) -> None:
    assert titles(tmp_path, 1, 1, lambda _, panels: panels[0].set_title("GRU")) == ["GRU"]
    found = titles(tmp_path, 2, 2, lambda _, panels: panels[1].set_title("LSTM"))
    assert [title.split("{")[1][0] for title in found] == ["a", "b", "c", "d"]
    assert found[1].endswith("  LSTM")


def test_scales_and_empty_panels_have_no_letter(tmp_path: Path) -> None:
    def change(figure: Any, panels: Any) -> None:
        figure.colorbar(panels[0].contourf([[0.0, 1.0], [1.0, 2.0]]), ax=panels)
        panels[1].set_axis_off()

    *letters, scale = titles(tmp_path, 1, 3, change)
    assert scale == ""
    assert [bool(title) for title in letters] == [True, False, True]
    assert "{b}" in letters[2]


@pytest.mark.parametrize("names", [("GRU: a$b", "x")])
def test_a_title_stays_as_it_is(tmp_path: Path, names: tuple[str, ...]) -> None:
    def change(_: Any, panels: Any) -> None:
        for panel, name in zip(panels, names, strict=True):
            panel.set_title(name.replace("$", r"\$"))

    assert [title.partition("  ")[2] for title in titles(tmp_path, 1, 2, change)] == [r"GRU: a\$b", "x"]


def test_boxes_say_how_many_values_they_stand_for(tmp_path: Path) -> None:
    kept: list[Any] = []

    def draw() -> Any:
        figure, panels = grid(1, 2)
        draw_boxes(panels[0], {"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0]}, [("red", 1.0), ("blue", 1.0)])
        draw_box_pairs(panels[1], [{1: [1.0, 2.0]}, {1: [3.0, 4.0]}])
        panels[1].set_xlabel("words")
        kept.append(figure)
        return figure

    save(draw, tmp_path, "figure")
    assert [axes.get_xlabel() for axes in kept[0].axes] == ["n = 2 to 3", "words, n = 2"]


def test_captions_name_the_seed_of_the_first_result_and_need_one() -> None:
    experiment = EXPERIMENTS.get("implicit-ngrams/intensification")()
    results = collect(experiment, "cpu", ResultStore(Path(__file__).parents[4] / "results"))
    assert seed_captions(["a", "b"], "boxes", results) == dict.fromkeys("ab", "the boxes are those of seed 0.")
    assert seed_captions(["a"], "boxes", []) == {}


def test_lines_say_of_how_many_seeds_they_are(tmp_path: Path) -> None:
    experiment = EXPERIMENTS.get("cs224d-notes-4/gradients")()
    results = collect(experiment, "cpu", ResultStore(Path(__file__).parents[4] / "results"))
    kept: list[Any] = []

    def draw() -> Any:
        figure, panels = grid(1, 2)
        panels[0].plot([1, 2])
        panels[0].set_xlabel("steps")
        write_seeds(panels, results, "16 texts")
        kept.extend(panels)
        return figure

    save(draw, tmp_path, "lines")
    assert [panel.get_xlabel() for panel in kept] == ["steps, n = 3 seeds of 16 texts", ""]


@pytest.mark.parametrize("name", ["negation-rates", "known-truth", "faithfulness"])
def test_figures_of_our_questions_say_of_how_many_they_are(name: str, tmp_path: Path) -> None:
    experiment = EXPERIMENTS.get(f"ours/{name}")()
    results = collect(experiment, "cpu", ResultStore(Path(__file__).parents[4] / "results"))
    ((key, draw),) = experiment.report(results, "cpu").figures.items()
    kept: list[Any] = []
    save(lambda: kept.append(draw()) or kept[0], tmp_path, key)
    for panel in kept[0].axes:
        assert re.search(r"n = \d", panel.get_xlabel()), panel.get_title(loc="left")
        assert "\n" in panel.get_xlabel() or len(panel.get_xlabel()) <= 42  # panels are narrow
    unsaved = draw()
    assert not any("n = " in panel.get_xlabel() for panel in unsaved.axes)
