from __future__ import annotations

import gzip
import lzma

import pytest

from unrolled.errors import DataError, FileError, UsageError
from unrolled.text.reading import find_file, read_lines

TEXT = "eins\nzwei\u0085\u2028drei\u00a0vier\n\nende\n"
LINES = ["eins", "zwei\u0085\u2028drei\u00a0vier", "", "ende"]
PACKERS = {"": lambda data: data, ".gz": gzip.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("suffix", PACKERS)
def test_plain_and_packed_files_are_read_alike_and_split_at_line_feeds_only(tmp_path, suffix):
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(PACKERS[suffix](TEXT.encode()))
    assert find_file("a.txt", tmp_path) == path
    assert read_lines(path) == LINES


def test_a_file_may_lack_its_last_line_end(tmp_path):
    (tmp_path / "a.txt").write_text("a\nb")
    assert read_lines(tmp_path / "a.txt") == ["a", "b"]
    (tmp_path / "a.txt").write_text("")
    assert read_lines(tmp_path / "a.txt") == []


def test_the_folder_comes_from_the_caller_or_else_from_the_environment(tmp_path, monkeypatch):
    (tmp_path / "a.txt").touch()
    monkeypatch.setenv("UNROLLED_DATA", str(tmp_path))
    assert find_file("a.txt") == tmp_path / "a.txt"
    with pytest.raises(FileError, match=r"no a\.txt in .*elsewhere; expected a\.txt, a\.txt\.xz or a\.txt\.gz"):
        find_file("a.txt", tmp_path / "elsewhere")
    monkeypatch.delenv("UNROLLED_DATA")
    with pytest.raises(UsageError, match="no data folder; expected --data-dir, or the variable UNROLLED_DATA"):
        find_file("a.txt")


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_truncated_or_mislabelled_file_is_a_data_error(tmp_path, suffix):
    path = tmp_path / f"a.txt{suffix}"
    for content in (PACKERS[suffix](TEXT.encode() * 50)[:-12], b"plain text, not packed"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=rf"a\.txt\{suffix}: expected a whole \{suffix} file"):
            read_lines(path)


def test_text_in_another_encoding_is_a_data_error(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    with pytest.raises(DataError, match="expected UTF-8 text; byte 3 is not"):
        read_lines(tmp_path / "a.txt")


def test_what_is_no_file_is_a_file_error(tmp_path):
    with pytest.raises(FileError, match="cannot be read: Is a directory"):
        read_lines(tmp_path)
