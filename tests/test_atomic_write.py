from __future__ import annotations

import os
from pathlib import Path

import pytest

from unrolled.atomic_write import atomic_write
from unrolled.errors import FileError

KINDS = pytest.mark.parametrize("durable", [False, True])


@KINDS
def test_a_file_is_replaced_whole(tmp_path, durable):
    path = tmp_path / "page.html"
    atomic_write(path, b"a longer first version", durable=durable)
    atomic_write(str(path), b"second", durable=durable)
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(FileError, match="folder"):
        atomic_write(tmp_path, b"")


@pytest.mark.parametrize("name", ["missing/page.html", "n" * 300 + ".html", "nul\0.html"])
def test_a_path_that_cannot_be_is_refused_in_one_line(tmp_path, name):
    with pytest.raises(FileError, match="cannot write") as caught:
        atomic_write(tmp_path / name, b"")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_parent_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileError, match=r"the folder .*file' does not exist"):
        atomic_write(tmp_path / "file" / "page.html", b"")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileError, match="not a regular file"):
        atomic_write(pipe, b"")
    assert pipe.is_fifo()


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    atomic_write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@KINDS
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, durable):
    path = tmp_path / "page.html"
    path.write_bytes(b"old")

    def full(*_: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(FileError, match="No space left"):
        atomic_write(path, b"new", durable=durable)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@KINDS
def test_a_short_write_goes_on_until_all_bytes_are_written(tmp_path, monkeypatch, durable):
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, content[:3]))
    atomic_write(tmp_path / "page.html", b"ten bytes.", durable=durable)
    assert (tmp_path / "page.html").read_bytes() == b"ten bytes."


def test_only_a_durable_write_waits_for_the_disk_before_and_after_the_replacement(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (calls.append("fsync"), fsync(descriptor)))
    monkeypatch.setattr(Path, "replace", lambda *paths: (calls.append("replace"), replace(*paths)))
    atomic_write(tmp_path / "page.html", b"")
    assert calls == ["replace"]
    calls.clear()
    atomic_write(tmp_path / "page.html", b"", durable=True)
    assert calls == ["fsync", "replace", "fsync"]


def test_what_a_killed_durable_write_left_is_overwritten(tmp_path):
    (tmp_path / ".step.safetensors.tmp").write_bytes(b"half of a long che")
    atomic_write(tmp_path / "step.safetensors", b"whole", durable=True)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("step.safetensors", b"whole")]


@KINDS
@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_the_file_is_as_readable_as_any_other_new_file(tmp_path, durable):
    (tmp_path / "plain").write_bytes(b"")
    atomic_write(tmp_path / "ours", b"", durable=durable)
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("links", [True, False])
def test_of_two_who_write_a_new_file_at_once_one_is_refused(tmp_path, monkeypatch, links):
    if not links:

        def link(*_):
            raise OSError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", link)
    path = tmp_path / "predictions.csv"
    atomic_write(path, b"first", new=True)
    with pytest.raises(FileError, match=r"cannot write '.*predictions\.csv': it has been written meanwhile"):
        atomic_write(path, b"second", new=True)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_of_many_processes_that_write_a_new_file_one_succeeds(tmp_path):
    path, children = tmp_path / "predictions.csv", []
    for number in range(8):
        child = os.fork()
        if not child:
            try:
                atomic_write(path, str(number).encode() * 1000, new=True)
                os._exit(0)
            except FileError:
                os._exit(3)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sorted(codes) == [0] + [3] * 7
    assert path.read_bytes() == str(codes.index(0)).encode() * 1000
