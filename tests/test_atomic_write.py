from __future__ import annotations

import os
from pathlib import Path

import pytest

from unrolled.atomic_write import write_whole
from unrolled.errors import FileError


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "page.html"
    write_whole(path, b"a longer first version")
    write_whole(str(path), b"second")
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(FileError, match="folder"):
        write_whole(tmp_path, b"")


@pytest.mark.parametrize("name", ["missing/page.html", "n" * 300 + ".html", "nul\0.html"])
def test_a_path_that_cannot_be_is_refused_in_one_line(tmp_path, name):
    with pytest.raises(FileError, match="cannot write") as caught:
        write_whole(tmp_path / name, b"")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_parent_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileError, match="no folder"):
        write_whole(tmp_path / "file" / "page.html", b"")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileError, match="plain file"):
        write_whole(pipe, b"")
    assert pipe.is_fifo()


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_bytes(b"old")

    def full(*_: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(FileError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_the_file_is_as_readable_as_any_other_new_file(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    write_whole(tmp_path / "ours", b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode
