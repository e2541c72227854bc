"""Long texts in numbers: the same as short ones, in memory that does not grow with the text."""

from __future__ import annotations

import gc
import random
import tempfile
import tracemalloc
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from unrolled.errors import DataError, FileError
from unrolled.lab.data import stream_encoding as stream_index
from unrolled.lab.data.corpus import Characters, Words
from unrolled.lab.data.formats import read_files
from unrolled.lab.data.stream_encoding import build_vocabulary, count_tokens, encode_stream
from unrolled.lab.data.vocabulary import Vocabulary

LINES = [["b", "a", "B", "<eos>"], ["c", "a", "<unk>", "<eos>"], ["d", "b", "\n"], []]


def drawn(lines, seed=0, types=300):
    draw = random.Random(seed)
    words = [f"w{number}" for number in range(types)]
    return [draw.choices(words, k=draw.randrange(12)) for _ in range(lines)]


@pytest.mark.parametrize("options", [{}, {"min_count": 2}, {"lowercase": True}, {"min_count": 2, "lowercase": True}])
def test_the_vocabulary_is_that_of_a_text_in_memory(options):
    assert build_vocabulary(LINES, **options) == Vocabulary.from_texts(LINES, **options)
    assert build_vocabulary(drawn(500), **options) == Vocabulary.from_texts(drawn(500), **options)


def test_the_most_frequent_words_are_known_and_equals_in_alphabetical_order():
    whole = build_vocabulary(drawn(500))
    assert build_vocabulary(drawn(500), most=20).words == whole.words[:22]
    assert build_vocabulary([["b", "a", "c", "c"]], most=2).words == ("<pad>", "<unk>", "c", "a")
    assert build_vocabulary([["a"]], most=9).words == ("<pad>", "<unk>", "a")


@pytest.mark.parametrize("options", [{"most": 0}, {"most": -1}, {"min_count": 0}])
def test_a_vocabulary_of_nothing_is_refused(options):
    with pytest.raises(ValueError, match=r"(most|min_count) is (0|-1); expected 1 or more"):
        build_vocabulary(LINES, **options)


def test_what_the_text_itself_writes_as_unknown_is_the_unknown_word():
    vocabulary = build_vocabulary(LINES)
    assert vocabulary.words.count("<unk>") == 1
    assert encode_stream([["<unk>", "never seen", "a"]], vocabulary).tolist() == [1, 1, vocabulary.encode(["a"])[0]]


@pytest.mark.parametrize("at_once", [1, 7, 10**6])
def test_counts_put_aside_on_disk_are_the_counts(at_once):
    lines = [*drawn(300), *LINES]
    with count_tokens(lines, at_once=at_once) as counts:
        found = list(counts)
    expected = Counter(token for line in lines for token in line)
    assert dict(found) == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize("at_once", [1, 50, 2**16])
def test_the_indices_are_those_of_each_line_after_the_other(monkeypatch, at_once):
    monkeypatch.setattr(stream_index, "_MOST_LOOKED_UP", at_once)
    lines = drawn(200)
    vocabulary = build_vocabulary(lines, most=30)
    found = encode_stream(lines, vocabulary)
    assert found.dtype == torch.int32
    assert found.tolist() == [number for line in lines for number in vocabulary.encode(line)]


def test_nothing_is_left_in_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = encode_stream(drawn(200), build_vocabulary(drawn(200)))
    with count_tokens(drawn(50), at_once=5) as counts:
        next(counts)
        assert list(tmp_path.iterdir()) == []
    assert list(tmp_path.iterdir()) == []
    assert found.sum() > 0  # and still there


def test_a_temporary_folder_that_cannot_be_written_is_named(monkeypatch):
    class Full:
        def write(self, _):
            raise OSError(28, "No space left on device")

    words = build_vocabulary([["a"]])
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: nullcontext(Full()))
    with pytest.raises(FileError, match=r"cannot be written: No space left on device; set the variable TMPDIR to"):
        encode_stream([["a"]], words)


def test_a_text_without_tokens_is_refused():
    with pytest.raises(DataError, match="a text has no tokens; expected at least one"):
        encode_stream([[], []], build_vocabulary([["a"]]))


def peak(work):
    """The most memory that Python and numpy hold while something is done, beyond what they held before."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = work()
    most = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    del kept
    return most


def write_text(path: Path, lines: int) -> Path:
    draw = random.Random(0)
    words = [f"word{number}" for number in range(500)]
    with path.open("w") as file:
        for _ in range(lines):
            file.write(" ".join(draw.choices(words, k=12)) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Words, Characters])
def test_memory_does_not_grow_with_the_text(tmp_path, kind):
    """Read, split, counted and indexed: ten times the text needs no more memory; a list of its lines does."""

    def read(path):
        corpus = read_files(kind, [path])
        vocabulary = build_vocabulary(corpus.train)
        return vocabulary, [encode_stream(split, vocabulary) for split in (corpus.train, corpus.dev, corpus.test)]

    small, large = (write_text(tmp_path / f"{lines}.txt", lines) for lines in (1_000, 10_000))
    read(small)  # caches and imports
    needed = [peak(lambda path=path: read(path)) for path in (small, large)]
    bound = 600_000  # what is looked up at a time, and a line
    assert max(needed) < bound
    assert peak(lambda: [list(line) for line in read_files(kind, [large]).train]) > bound


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_different_words():
    def lines(count):
        return ([f"{number:09}" for number in range(begin, begin + 10)] for begin in range(0, count, 10))

    def counted(count, at_once):
        with count_tokens(lines(count), at_once=at_once) as counts:
            return Vocabulary.from_counts(counts, most=10)

    needed = peak(lambda: counted(40_000, 2_000))
    assert needed < 1_500_000
    assert peak(lambda: counted(40_000, 10**6)) > 3 * needed
    assert counted(40_000, 2_000) == counted(40_000, 10**6)
