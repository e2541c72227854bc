"""``unrolled reproduce``: the gallery, lists, budgets and pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unrolled.lab.cli.printed_table import print_table
from unrolled.lab.papers import EXPERIMENTS
from unrolled.lab.papers.framework.table import Table

Command = Callable[..., Any]


def test_a_gallery_of_an_empty_archive_is_a_page_without_figures(unrolled: Command, tmp_path: Path) -> None:
    page = tmp_path / "gallery.md"
    folders = ("--results", tmp_path / "results", "--figures", tmp_path / "figures")
    done = unrolled("reproduce", "--gallery", page, *folders)
    assert (done.status, done.out) == (0, f"page: {page}\n")
    assert page.read_text().startswith("# Gallery\n")
    assert "![" not in page.read_text()
    assert not (tmp_path / "figures").exists()


def test_a_gallery_without_a_folder_for_its_figures_is_refused(unrolled: Command, tmp_path: Path) -> None:
    page = tmp_path / "gallery.md"
    unrolled("reproduce", "--gallery", page).assert_refused(2, "no folder for the figures", "pass --figures")
    assert not page.exists()


def test_an_estimate_and_a_budget_of_hours_are_not_taken_together(unrolled: Command) -> None:
    unrolled("reproduce", "--estimate", "--hours", "1").assert_refused(2, "first steps only", "pass one of the two")


def test_a_list_of_items_has_these_alone(unrolled: Command, tmp_path: Path) -> None:
    def listed(*words: object) -> list[str]:
        done = unrolled("reproduce", *words, "--list", "--results", tmp_path)
        assert done.status == 0
        return [line.split()[0] for line in done.out.split("\n\n")[0].splitlines()]

    every = listed()
    assert listed("cs577-lecture-5/memorising") == ["cs577-lecture-5/memorising"]
    ours = listed("ours")
    assert ours == [name for name in every if name.startswith("ours/")]
    assert 1 < len(ours) < len(every)
    unrolled("reproduce", "nosuch", "--list").assert_refused(2, "unknown item 'nosuch'")


@pytest.mark.parametrize("columns", [40, 80])
def test_a_narrow_terminal_breaks_titles_between_words(
    unrolled: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    piped = unrolled("reproduce", "ours", "--list", "--results", tmp_path).out
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal
    shown = unrolled("reproduce", "ours", "--list", "--results", tmp_path).out
    assert max(map(len, shown.splitlines())) <= columns < max(map(len, piped.splitlines()))
    assert shown.partition("behind")[0].split() == piped.partition("behind")[0].split()


def test_an_unknown_item_is_answered_with_every_name_once(unrolled: Command) -> None:
    refused = unrolled("reproduce", "nosuch")
    refused.assert_refused(2, "unknown item 'nosuch'; expected one of: ")
    names = refused.err.strip().partition("expected one of: ")[2].split(", ")
    assert "sequence-level-features" in names
    assert len(names) == len(set(names))


def test_results_are_imported_and_a_folder_that_is_none_is_refused(unrolled: Command, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    done = unrolled("reproduce", "--import-results", tmp_path / "old", "--results", tmp_path / "results")
    assert (done.status, done.out) == (0, "imported: 0 results\n")
    refused = unrolled("reproduce", "--import-results", tmp_path / "nosuch")
    refused.assert_refused(2, "nosuch is not a folder", "--import-results")


def test_an_item_without_trials_at_a_scale_says_so(unrolled: Command, tmp_path: Path) -> None:
    item = ("reproduce", "cs224d-notes-4/clipping-surface", "--scale", "day", "--results", tmp_path)
    done = unrolled(*item)
    assert done.status == 0
    assert "cs224d-notes-4/clipping-surface: no trials at scale day" in done.err
    assert "  –    " in unrolled(*item, "--list").out


def test_a_budget_of_no_time_runs_nothing_and_says_what_is_left(unrolled: Command, tmp_path: Path) -> None:
    papers, results = ("implicit-ngrams", "cs577-lecture-5"), tmp_path / "results"
    done = unrolled("reproduce", *papers, "--scale", "day", "--hours", 0, "--results", results)
    assert done.status == 0
    rows = [line.split("│")[1:-1] for line in done.out.splitlines() if "│" in line]
    counted = {row[0].strip(): (int(row[1]), int(row[2]), float(row[3])) for row in rows}
    assert {"implicit-ngrams/table3", "implicit-ngrams/table4", "all"} <= counted.keys()
    assert "cs577-lecture-5/memorising" not in counted
    run, left, hours = counted.pop("all")
    assert (run, left) == (0, sum(each[1] for each in counted.values()))
    assert hours == pytest.approx(sum(each[2] for each in counted.values()), abs=0.5)
    assert not results.exists()


def test_a_budget_is_filled_with_trials(unrolled: Command, tmp_path: Path) -> None:
    name, results = "cs577-lecture-5/memorising", tmp_path / "results"
    done = unrolled("reproduce", name, "--scale", "smoke", "--hours", 1, "--results", results)
    assert done.status == 0
    count = len((results / f"{name}.jsonl").read_text().splitlines())
    assert count > 0
    total = next(line for line in done.out.splitlines() if " all " in line).split("│")
    assert int(total[2]) == count
    assert int(total[3]) == 0


def test_pages_of_no_results_are_a_summary_that_says_so(unrolled: Command, tmp_path: Path) -> None:
    done = unrolled("reproduce", "--write", tmp_path / "pages", "--results", tmp_path / "results")
    assert (done.status, done.out) == (0, f"page: {tmp_path / 'pages' / 'README.md'}\n")
    assert "| not run |" in (tmp_path / "pages" / "README.md").read_text()
    done = unrolled("reproduce", "--write", tmp_path / "page.md", "--results", tmp_path / "results")
    assert (done.status, done.out) == (0, f"page: {tmp_path / 'page.md'}\n")


def test_a_result_keeps_what_was_run_and_no_folder_of_this_machine(unrolled: Command, tmp_path: Path) -> None:
    done = unrolled("reproduce", "cs577-lecture-5/memorising", "--scale", "smoke", "--results", tmp_path)
    assert done.status == 0
    assert "scale smoke: made-up data and tiny models" in done.out
    kept = "".join(path.read_text() for path in tmp_path.rglob("*.jsonl"))
    assert '"command": "unrolled reproduce cs577-lecture-5/memorising --scale smoke"' in kept
    assert str(tmp_path) not in kept


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_number_of_a_table_is_cut_in_a_narrow_terminal(
    unrolled: Command, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    results = Path(__file__).parents[3] / "results"
    done = unrolled("reproduce", "implicit-ngrams/negation", "--results", results)
    rows = [line for line in done.out.splitlines() if line[:1] in "┏┃┡│└"]
    assert all(len(row) <= width for row in rows)
    assert not any("…" in row for row in rows)
    cells = [cell.strip() for row in rows if row.startswith("│ GRU") for cell in row.strip("│").split("│")]
    assert [cell for cell in cells if cell != "GRU"] == [
        "85.2",
        "100",
        "100",
        "100",
        "98",
        "5.53",
        "-8.32",
        "-5.11",
        "4.09",
    ]
    assert (cells.count("GRU") > 1) == (width < 200)


def test_no_name_of_an_item_is_cut(unrolled: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two items of one paper begin alike: cut names are the same name."""
    monkeypatch.setenv("COLUMNS", "40")
    done = unrolled("reproduce", "sequence-level-features", "--scale", "day", "--hours", 0, "--results", tmp_path)
    first = "".join(line.split("│")[1].strip() for line in done.out.splitlines() if line.startswith("│"))
    assert "sequence-level-features/table2sequence-level-features/table3" in first


def test_each_part_of_a_wide_table_tells_its_rows_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ("cell", "clipped", "distance", "gradient")
    rows = [(cell, clipped, "12345678", "87654321") for cell in ("tanh", "relu") for clipped in ("at 1", "no")]
    monkeypatch.setenv("COLUMNS", "34")
    print_table(Table("a title", columns, rows))
    parts = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert len(parts) == len(rows) * 2
    assert len(set(parts)) == len(parts)


def test_findings_are_set_for_a_terminal_and_brackets_are_explained(
    unrolled: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    results = Path(__file__).parents[3] / "results"
    done = unrolled("reproduce", "implicit-ngrams/negation", "--results", results)
    assert "\nin brackets: published numbers\n" in done.out
    assert "ours/negation-rates" in done.out  # a link keeps its text,
    assert "ours-negation-rates.md" not in done.out  # and not its address
    assert all(len(line) <= 80 for line in done.out.splitlines())


def test_other_word_vectors_are_trials_of_their_own(unrolled: Command, tmp_path: Path) -> None:
    (tmp_path / "seven.txt").write_text("a 1 2 3 4 5 6 7\n")
    room = ("--data-dir", tmp_path, "--results", Path("results").absolute())

    def listed(*words: object) -> str:
        done = unrolled("reproduce", "implicit-ngrams/intensification", "--list", *room, *words)
        assert done.status == 0
        return done.out.split("\n\n")[0].split()[1]

    total = listed().split("/")[1]
    assert listed("--vectors", "seven.txt") == f"0/{total}"
    unrolled("reproduce", "ours/errors", "--vectors", "seven.txt", *room).assert_refused(
        2, "none of these items begins with pretrained word vectors", "leave out --vectors seven.txt"
    )
    unrolled("reproduce", "--vectors", "eight.txt", "--list", *room).assert_refused(74, "no eight.txt in")


def test_a_figure_of_a_paper_leads_to_its_item(unrolled: Command, tmp_path: Path) -> None:
    refused = unrolled("reproduce", "sequence-level-features/figure1")
    refused.assert_refused(2, "items of sequence-level-features: ", "negation (table 1, figures 1 and 2)")
    listed = unrolled("reproduce", "--list", "--results", tmp_path).out.splitlines()
    (line,) = (line for line in listed if line.startswith("sequence-level-features/negation "))
    assert line.endswith("scores of adjectives (table 1, figures 1 and 2)")
    (own,) = (line for line in listed if line.startswith("ours/errors "))
    assert "appendix" not in own


def test_of_an_item_that_is_mistyped_the_nearest_one_is_named_before_the_list(unrolled: Command) -> None:
    refused = unrolled("reproduce", "ours/faithfullness")
    refused.assert_refused(2, "did you mean 'ours/faithfulness'?; items of ours: ")
    unknown = unrolled("reproduce", "ours/qqqq")
    unknown.assert_refused(2, "unknown item 'ours/qqqq'; items of ours: ")


def test_without_a_data_folder_the_lists_of_datasets_are_named(
    unrolled: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UNROLLED_DATA", raising=False)
    refused = unrolled("reproduce", "implicit-ngrams/triangle", "--results", tmp_path)
    assert refused.status == 2
    assert "unrolled: error: no data folder" in refused.err
    assert "`unrolled data list`" in refused.err
    generated = unrolled("reproduce", "cs577-lecture-5/memorising", "--scale", "smoke", "--results", tmp_path)
    assert (generated.status, "no data folder" in generated.err) == (0, False)


def test_a_table_that_fits_folds_no_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    name = "a-name-of-more-letters-than-a-wide-table-keeps"
    for width, whole in ((80, True), (50, False)):
        monkeypatch.setenv("COLUMNS", str(width))
        print_table(Table("a title", ("item", "run", "left"), [(name, "60", "0")]))
        assert (name in capsys.readouterr().out) == whole


def test_all_items_are_run_one_after_the_other_into_one_folder(
    unrolled: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["cs577-lecture-5/memorising", "implicit-ngrams/triangle"]
    monkeypatch.setattr(EXPERIMENTS, "members", {name: EXPERIMENTS.get(name) for name in names})
    done = unrolled("reproduce", "--all", "--scale", "smoke", "--results", tmp_path)
    assert done.status == 0, done.err
    stored = [(tmp_path / f"{name}.jsonl").read_text() for name in names]
    assert all('"unrolled reproduce --all --scale smoke"' in each for each in stored)
    assert done.out.count("these numbers show that the code runs") == 2
    unrolled("reproduce", "--scale", "smoke").assert_refused(2, "nothing to run", "--all")  # the control
