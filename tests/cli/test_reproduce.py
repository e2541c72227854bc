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
