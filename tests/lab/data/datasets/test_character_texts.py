from __future__ import annotations

import platform
from collections import Counter

import pytest

from unrolled.errors import DataError, FileError
from unrolled.lab.data.corpus import Characters
from unrolled.lab.data.datasets.character_texts import PythonSource, TinyShakespeare, WarAndPeace


def text(stream):
    return "".join("".join(line) for line in stream)


def test_a_book_is_cut_by_position_without_its_mark_and_with_plain_line_ends(tmp_path):
    (tmp_path / "charlm").mkdir()
    lines = [f"line {number:03}" for number in range(100)]
    (tmp_path / "charlm" / "warpeace_input.txt").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    corpus = WarAndPeace().read(tmp_path)
    assert (type(corpus), corpus.unit) == (Characters, "character")
    splits = [text(split).splitlines() for split in (corpus.train, corpus.dev, corpus.test)]
    assert [line for split in splits for line in split] == lines
    assert [len(split) for split in splits] == [80, 10, 10]
    assert "\r" not in text(corpus.train)


def library(folder, modules=40):
    for number in range(modules):
        (folder / f"module{number}.py").write_text(f"'Module {number}.'\n" + "x = 1\n" * 20)
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("def f():\n    pass\n")
    (package / "latin.py").write_bytes("# coding: latin-1\ns = 'é'\n".encode("latin-1"))
    for name in ("tests", "test", "__pycache__"):
        (package / name).mkdir()
        (package / name / "test_f.py").write_text("left out\n")
    (folder / "site-packages").mkdir()
    (folder / "site-packages" / "installed.py").write_text("left out\n")
    (folder / "notes.txt").write_text("left out\n")
    return folder


def test_the_library_is_all_its_modules_each_in_one_split(tmp_path):
    corpus = PythonSource(library=library(tmp_path)).read()
    splits = [text(split) for split in (corpus.train, corpus.dev, corpus.test)]
    whole = "".join(splits)
    assert "left out" not in whole
    assert "s = 'é'" in whole
    for number in range(40):
        assert sum(f"'Module {number}.'" in split for split in splits) == 1
    assert sum("def f" in split or "é" in split for split in splits) == 1  # a package is not cut
    for split in splits[1:]:
        assert 0.05 < len(split) / len(whole) <= 0.1
    assert corpus.name == f"python-{platform.python_version()}"


def test_it_is_the_same_for_the_same_library_and_read_as_often_as_asked(tmp_path):
    one, other = (PythonSource(library=folder).read() for folder in (library(tmp_path), tmp_path))
    for split in ("train", "dev", "test"):
        assert text(getattr(one, split)) == text(getattr(other, split)) == text(getattr(one, split))


def test_a_library_without_sources_is_refused(tmp_path):
    with pytest.raises(FileError, match="expected the source files of Python's standard library, found 0 modules"):
        PythonSource(library=tmp_path).read()


def test_a_file_that_is_no_source_is_named(tmp_path):
    (library(tmp_path) / "module7.py").write_bytes(b"\xff\xfe = 1\n")
    corpus = PythonSource(library=tmp_path).read()
    with pytest.raises(DataError, match=r"module7\.py: expected Python's source; "):
        [text(split) for split in (corpus.train, corpus.dev, corpus.test)]


def test_this_interpreters_own_library_can_be_read_on_every_machine():
    corpus = PythonSource().read()
    sizes = [sum(map(len, split)) for split in (corpus.train, corpus.dev, corpus.test)]
    assert sum(sizes) > 5_000_000
    assert sizes[1] / sum(sizes) == pytest.approx(0.1, abs=0.01)
    assert sizes[2] / sum(sizes) == pytest.approx(0.1, abs=0.01)


@pytest.mark.data
def test_the_real_novel_has_the_published_counts(data_folder):
    corpus = WarAndPeace().read(data_folder)
    counts = [Counter(text(split)) for split in (corpus.train, corpus.dev, corpus.test)]
    whole = sum(counts, Counter())
    assert whole.total() == 3_196_212 + 1  # the last line has no end in the file, and one here
    assert whole["\n"] == 62_014 + 1
    assert len(whole) == 82
    assert [each.total() / whole.total() for each in counts] == pytest.approx([0.8, 0.1, 0.1], abs=1e-4)


@pytest.mark.data
def test_the_real_plays_have_the_published_counts(data_folder):
    corpus = TinyShakespeare().read(data_folder)
    whole = sum((Counter(text(split)) for split in (corpus.train, corpus.dev, corpus.test)), Counter())
    assert (whole.total(), len(whole), whole["\n"]) == (1_115_394, 65, 40_000)
