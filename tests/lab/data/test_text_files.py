from __future__ import annotations

import gzip
import lzma
import tracemalloc
from pathlib import Path

import pytest

from unrolled.errors import DataError, FileError
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.text_files import iter_lines, malformed, without_compression

TEXT = "eins\nzwei\u0085\u2028drei\u00a0vier\n\nende\n"
LINES = ["eins", "zwei\u0085\u2028drei\u00a0vier", "", "ende"]
PACKERS = {"": lambda data: data, ".gz": gzip.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("suffix", PACKERS)
def test_plain_and_packed_files_are_read_alike_and_split_at_line_feeds_only(tmp_path, suffix):
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(PACKERS[suffix](TEXT.encode()))
    assert find_file("a.txt", tmp_path) == path
    assert list(iter_lines(path)) == LINES


def test_a_file_may_lack_its_last_line_end(tmp_path):
    (tmp_path / "a.txt").write_text("a\nb")
    assert list(iter_lines(tmp_path / "a.txt")) == ["a", "b"]
    (tmp_path / "a.txt").write_text("")
    assert list(iter_lines(tmp_path / "a.txt")) == []


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_truncated_or_mislabelled_file_is_a_data_error(tmp_path, suffix):
    path = tmp_path / f"a.txt{suffix}"
    for content in (PACKERS[suffix](TEXT.encode() * 50)[:-12], b"plain text, not packed"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=rf"a\.txt\{suffix}:\d+: expected a whole \{suffix} file, found "):
            list(iter_lines(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"one\ncaf\xe9",
            r"a\.txt:2: expected UTF-8 text, found the byte 0xe9 at column 4; save the file with the enc",
        ),
        (
            b"one\rtwo\r",
            r"a\.txt:1: expected lines that end in a line feed, found carriage returns alone; save .*tr '\\r' '\\n' ",
        ),
        (b"one\n\ntw\0o\n", r"a\.txt:3: expected text, found a NUL at column 3; the file is damaged, or is not a"),
        (
            b"PK\x03\x04\x14\0",
            r"a\.txt:1: expected text, found an archive, such as a workbook of Excel; save a sheet as CSV",
        ),
        (b"BZh91AY&SY\r\0", r"a\.txt:1: expected text, found a file compressed with bzip2; unpack it"),
        (b"PAR1\x15\0", r"a\.txt:1: expected text, found a Parquet file; write it as CSV: pandas"),
        (b"\x1f\x8b\x08\0", r"a\.txt:1: expected text, found a file compressed with gzip; .* suffix \.gz"),
        (
            b"one\n" + b"x" * 10_000_000,
            r"a\.txt:2: expected a line of at most 4,194,304 bytes, found a longer one; check",
        ),
    ],
)
def test_what_is_no_text_is_a_data_error_that_names_the_line(tmp_path, content, message):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(iter_lines(tmp_path / "a.txt"))


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\n\r\n", ["a\rb", ""]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf", [""]),
        (b"PK and others\n", ["PK and others"]),
        (b"\n\n", ["", ""]),
    ],
)
def test_line_ends_may_be_cr_lf_and_a_byte_order_mark_is_no_text(tmp_path, content, lines):
    (tmp_path / "a.txt").write_bytes(content)
    assert list(iter_lines(tmp_path / "a.txt")) == lines


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["", *(pytest.param(each, marks=pytest.mark.fuzz) for each in PACKERS if each)])
def test_a_file_is_read_in_the_memory_of_a_line(tmp_path, suffix):
    size = 8_000_000
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(PACKERS[suffix](b"a line of text that is like the others\n" * (size // 39)))
    for read, fits in ((iter_lines, True), (lambda path: list(iter_lines(path)), False)):
        tracemalloc.start()
        assert sum(1 for _ in read(path)) == size // 39
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (peak < 10_000_000) is fits  # xz itself looks back on 8 MiB


def test_lines_are_read_as_they_are_asked_for(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\n\xff\n")
    lines = iter_lines(tmp_path / "a.txt")
    assert [next(lines), next(lines)] == ["one", "two"]
    with pytest.raises(DataError, match=r"a\.txt:3: expected UTF-8"):
        next(lines)


def test_a_long_finding_is_cut_off(tmp_path):
    error = malformed(tmp_path / "a.txt", 7, "a word", "x" * 1000, "use fewer letters")
    assert str(error) == f"{tmp_path}/a.txt:7: expected a word, found {'x' * 39}…; use fewer letters"


def test_a_packed_file_is_named_as_it_is_called_unpacked():
    names = ["a.tsv", "a.tsv.gz", "a.b.xz", "a"]
    assert [without_compression(Path(name)).name for name in names] == ["a.tsv", "a.tsv", "a.b", "a"]


def test_what_is_no_file_is_a_file_error(tmp_path):
    with pytest.raises(FileError, match="cannot be read: Is a directory"):
        list(iter_lines(tmp_path))
