"""The pages about results: every item in the summary, every figure in one place, nothing of what was not run."""

from __future__ import annotations

import re

import pytest

from unrolled.lab.papers.framework.pages import gallery_page, single_page, write_pages
from unrolled.lab.papers.framework.result_store import ResultStore
from unrolled.lab.papers.framework.runner import run_experiment

pytest.importorskip("matplotlib", reason="figures need the extra [figures]")


@pytest.fixture
def store(tmp_path, arithmetic, write_findings):
    store = ResultStore(tmp_path / "results")
    for experiment in arithmetic.items[:2]:
        results = run_experiment(experiment, "cpu", store, command="the command")
        write_findings(store, experiment, "cpu", results, "- Squares grow.")
    run_experiment(arithmetic.Cubes(), "smoke", store, command="c")
    return store


@pytest.fixture
def folder(store, tmp_path, arithmetic):
    folder = tmp_path / "docs" / "results"
    assert write_pages(arithmetic.items, store, folder, folder / "figures") == folder / "README.md"
    return folder


def test_the_summary_has_a_row_for_every_item_and_the_rules(folder):
    text = (folder / "README.md").read_text()
    link = "[arithmetic/squares](arithmetic-squares.md): Squares"
    assert f"| {link} | cpu | 8 | 1 | n=1, square | 4.00 | 1.00 | 1 of 8 | not reproduced |" in text
    assert "| arithmetic/cubes: Cubes | – | – | – | – | – | – | – | not run |" in text
    assert "## How a verdict is found\n\n1. If an item lists claims" in text
    assert "within 1.5 percentage points" in text
    assert "within\n   8 %" in text
    not_run = text.partition("## What has not been run")[2]
    assert "| `arithmetic/squares` | paper | – |" in not_run
    assert "| `arithmetic/cubes` | cpu, paper | – |" in not_run


def test_the_summary_has_the_differences_that_nobody_could_explain(store, tmp_path, arithmetic):
    page = tmp_path / "README.md"
    write_pages(arithmetic.items, store, tmp_path, tmp_path / "figures")
    assert "Unexplained" not in page.read_text()
    (store.folder / "unexplained.md").write_text("## Unexplained\n\n- Squares grow.\n")
    write_pages(arithmetic.items, store, tmp_path, tmp_path / "figures")
    assert "\n\n## Unexplained\n\n- Squares grow.\n\n## How a verdict is found" in page.read_text()


def test_a_page_has_tables_findings_figures_and_how_it_was_run(folder):
    text = (folder / "arithmetic-drawn.md").read_text()
    assert text.startswith(
        "# Drawn\n\n`arithmetic/drawn`: ours.\n\n## Scale cpu\n\nVerdict: **not reproduced** (1 of 8"
    )
    assert "| n=3 | 9.00 (4.00) |" in text
    assert "- Squares grow." in text
    links = re.findall(r"!\[Drawn: [\w-]+\]\((.+)\)", text)
    assert links == ["figures/lines.png", "figures/more-lines.png"]
    for link in links:
        assert (folder / link).read_bytes().startswith(b"\x89PNG")
    assert "| command | `the command` |" in text
    assert "| trials | 8, 1 seed(s) |" in text
    assert {path.name for path in folder.iterdir()} == {
        "README.md", "arithmetic-squares.md", "arithmetic-drawn.md", "figures",
    }  # fmt: skip
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".png"}


def test_an_item_that_was_run_at_two_scales_has_two_sections_and_two_rows(store, tmp_path, arithmetic):
    run_experiment(arithmetic.Drawn(), "paper", store, command="c")
    write_pages(arithmetic.items, store, tmp_path / "pages", tmp_path / "pages")
    text = (tmp_path / "pages" / "arithmetic-drawn.md").read_text()
    assert text.count("- Squares grow.") == 1  # the findings speak of scale cpu alone
    assert "## Scale paper" in text
    assert "(lines-paper.png)" in text
    assert (tmp_path / "pages" / "README.md").read_text().count("(arithmetic-drawn.md)") == 2


def test_an_item_that_was_run_in_part_says_so(store, tmp_path, arithmetic):
    (first, *_) = store.path(arithmetic.Squares.name).read_text().splitlines()
    store.path(arithmetic.Squares.name).write_text(first + "\n")
    write_pages(arithmetic.items, store, tmp_path / "pages", tmp_path / "pages")
    text = (tmp_path / "pages" / "README.md").read_text()
    assert "| cpu | 1 of 8 |" in text
    assert "| `arithmetic/squares` | paper | cpu (1 of 8 trials) |" in text
    assert "The written findings speak of other results" in (tmp_path / "pages" / "arithmetic-squares.md").read_text()


def test_a_single_page_has_all_items_and_no_figures(store, arithmetic):
    text = single_page(arithmetic.items, store)
    assert "## Squares" in text
    assert "## Drawn" in text
    assert "![" not in text
    assert "`arithmetic/cubes` | cpu, paper" in text


def test_a_gallery_has_the_figures_of_the_largest_scale_and_their_commands(store, tmp_path, arithmetic):
    run_experiment(arithmetic.Drawn(), "paper", store, command="c")
    text = gallery_page(arithmetic.items, store, tmp_path / "gallery.md", tmp_path / "figures")
    assert re.findall(r"\]\((.+)\)", text) == ["figures/lines-paper.png", "figures/more-lines-paper.png"]
    assert "`unrolled reproduce arithmetic/drawn --scale paper --figures " in text
    assert "Squares" not in text
