"""``unrolled reproduce``: the gallery, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    unrolled("reproduce", "--gallery", page).assert_refused(2, "no folder for the figures", "expected --figures")
    assert not page.exists()


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


def test_an_unknown_item_is_answered_with_every_name_once(unrolled: Command) -> None:
    refused = unrolled("reproduce", "nosuch")
    refused.assert_refused(2, "unknown item 'nosuch'; expected one of: ")
    names = refused.err.strip().partition("expected one of: ")[2].split(", ")
    assert "sequence-level-features" in names
    assert len(names) == len(set(names))
