"""Word vectors: GloVe's files and word2vec's, words with spaces, and what is malformed."""

from __future__ import annotations

import gc
import gzip
import lzma
import random
import tracemalloc

import pytest
import torch

from unrolled.errors import DataError, NonFiniteError
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.data.word_vectors import read_vectors, vector_size

GLOVE = "the 0.5 -1 2e-1\n. . . 1 2 3\n3 7 8 9\nThe 4 5 6\nthe 9 9 9\nolder 1 1 1\n"


def vocabulary(*words, lowercase=False):
    return Vocabulary(("<pad>", "<unk>", *words), lowercase)


def write(tmp_path, text, name="vectors.txt"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_the_words_that_are_known_have_their_vectors_and_the_others_none(tmp_path):
    found = read_vectors(write(tmp_path, GLOVE), vocabulary("the", "new", "3", ". . ."))
    assert found.matrix.dtype == torch.float32
    assert found.found.tolist() == [False, False, True, False, True, True]
    expected = torch.tensor([[0, 0, 0], [0, 0, 0], [0.5, -1, 0.2], [0, 0, 0], [7, 8, 9], [1, 2, 3]])
    assert torch.equal(found.matrix, expected)


def test_a_word_has_its_own_vector_before_that_of_its_lower_case(tmp_path):
    found = read_vectors(write(tmp_path, GLOVE), vocabulary("The", "the", "OLDER", "Older"))
    assert found.matrix[2:, 0].tolist() == [4, 0.5, 1, 1]
    after = read_vectors(write(tmp_path, "the 1\nThe 2\n"), vocabulary("The"))
    before = read_vectors(write(tmp_path, "The 2\nthe 1\n"), vocabulary("The"))
    assert after.matrix[2].item() == before.matrix[2].item() == 2


def test_word2vecs_header_and_its_spaces_at_the_lines_ends_are_no_vectors(tmp_path):
    found = read_vectors(write(tmp_path, "2 3\nthe 1 2 3 \n2 4 5 6 \n"), vocabulary("the", "2"))
    assert found.matrix[2:].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert found.found.tolist() == [False, False, True, True]


@pytest.mark.parametrize("first", ["the 1 2 3\n", "12 1 2 3\n", ". . . 1 2 3\n"])
def test_a_file_without_a_header_is_as_wide_as_its_first_line(tmp_path, first):
    assert read_vectors(write(tmp_path, first + "end 4 5 6\n"), vocabulary("end")).matrix[2].tolist() == [4, 5, 6]


@pytest.mark.parametrize(("name", "pack"), [("v.txt.xz", lzma.compress), ("v.txt.gz", gzip.compress)])
def test_packed_files_are_read_where_they_lie(tmp_path, name, pack):
    path = write(tmp_path, pack(GLOVE.encode()), name)
    assert read_vectors(path, vocabulary("the")).matrix[2, 0] == 0.5


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "a word and its vector, found none in the whole file; name a file of word vectors"),
        ("5 3\n", 1, "a word and its vector, found none in the whole file"),
        ("the\n", 1, "a word and its vector, found 'the'; a line is a word"),
        ("the one two\n", 1, "a word and its vector, found 'the one two'"),
        ("the 1 2 3\nend 4 5\n", 2, "a word and 3 numbers, found 2 in 'end 4 5'; every vector has the same size"),
        ("the 1 2 3\nend 4 5 6 7\n", 2, "a word and 3 numbers, found 4 in 'end 4 5 6 7'"),
        ("the 1 2 3\nend\n", 2, "a word and 3 numbers, found 0 in 'end'"),
        ("the 1 2 3\n\n", 2, "a word and 3 numbers, found 0 in ''"),
        ("9 2\nthe 1 2 3\n", 2, "a word and 2 numbers, found 3 in 'the 1 2 3'"),
        ("the 1 2 3\n 4 5 6\n", 2, "a word before the numbers, found ' 4 5 6'"),
        ("the 1 2 3\nend 4 x 6\n", 2, "a number, found 'x'"),
        ("the 1 2 3\nend 4 1_0 6\n", 2, "a number, found '1_0'"),
        ("the 1 2 3\nend 4 nan 6\n", 2, "finite numbers, found 'nan'; leave the line out"),
        ("the 1 2 3\nend 4 5 -inf\n", 2, "finite numbers, found '-inf'"),
        ("the 1 2 3\nend 4 5 1e400\n", 2, "finite numbers, found '1e400'"),
        (b"the 1 2 3\n\xff 4 5 6\n", 2, "UTF-8 text, found the byte 0xff at column 1"),
        (b"the 1 2 3\nen\0d 4 5 6\n", 2, "text, found a NUL at column 3"),
    ],
)
def test_what_is_malformed_is_named_with_its_line(tmp_path, text, line, message):
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_vectors(path, vocabulary("the", "end"))
    assert str(caught.value).startswith(f"{path}:{line}: expected {message}")
    assert isinstance(caught.value, NonFiniteError) is ("finite" in message)


def test_vectors_of_another_size_than_asked_for_are_refused(tmp_path):
    for text in (GLOVE, "1 3\nthe 1 2 3\n"):
        with pytest.raises(DataError, match=r"of 50 numbers, found 3 in .*, or set --embedding 3$"):
            read_vectors(write(tmp_path, text), vocabulary("the"), size=50)
    assert read_vectors(write(tmp_path, GLOVE), vocabulary("the"), size=3).found.sum() == 1


@pytest.mark.slow
def test_only_the_words_of_the_vocabulary_are_held(tmp_path):
    draw = random.Random(0)
    lines = (f"w{number} {' '.join(f'{draw.random():.4f}' for _ in range(50))}\n" for number in range(3000))
    path = write(tmp_path, "".join(lines))
    everything = vocabulary(*(f"w{number}" for number in range(3000)))
    peaks = []
    for words in (vocabulary("w7", "w2999"), everything):
        gc.collect()
        tracemalloc.start()
        found = read_vectors(path, words)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.found[2:].all()
    assert peaks[0] < 200_000
    assert peaks[1] > 3 * peaks[0]


@pytest.mark.parametrize("text", [GLOVE, "2 3\nthe 1 2 3\nold 4 5 6\n", ". . . 1 2 3\n"])
def test_the_size_of_a_vector_is_that_of_the_first_line_or_its_header(tmp_path, text):
    assert vector_size(write(tmp_path, text)) == 3


@pytest.mark.parametrize("text", ["", "the\n", "the old\n"])
def test_a_file_that_does_not_begin_with_a_vector_has_no_size(tmp_path, text):
    with pytest.raises(DataError):
        vector_size(write(tmp_path, text))
