"""Read word vectors from text files in the formats of GloVe and word2vec: a word and its numbers on each line.

Memory holds a line and the vectors of the vocabulary's words only.

- The first line of a word2vec file is a header: the number of words and the size of a vector. GloVe has none.
- A word may contain spaces (``. . .`` in GloVe 840B), so the numbers are counted from the end of the line.
- If a word occurs twice, its first vector is used.

Source:
    Pennington, Socher and Manning (2014), GloVe. https://aclanthology.org/D14-1162
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unrolled.errors import NonFiniteError
from unrolled.lab.data.text_files import iter_lines, malformed
from unrolled.lab.data.vocabulary import UNKNOWN, Vocabulary, compose

__all__ = ["WordVectors", "read_vectors", "vector_size"]


class WordVectors(NamedTuple):
    """The vectors of a vocabulary's words."""

    matrix: Tensor
    """Shape (words, size), float32; zero for a word without a vector."""
    found: Tensor
    """Which words have a vector, shape (words,), bool."""


def read_vectors(path: Path, vocabulary: Vocabulary, size: int | None = None) -> WordVectors:
    """Read the vectors of a vocabulary's words from a file, plain or compressed.

    A word whose lower-cased form only is in the file takes that vector. A composed vocabulary finds words in either of
    Unicode's forms.

    Args:
        path: A text file in the format of GloVe or word2vec.
        vocabulary: The words; ``<pad>`` and ``<unk>`` have no vector.
        size: The expected size of a vector; None for the size of the first one.

    Raises:
        DataError: If a line has the wrong number of numbers, or one that cannot be read; with file and line.
        NonFiniteError: If a number is NaN or infinite.

    Example:
        >>> read_vectors(Path("glove.6B.50d.txt"), vocabulary).matrix.shape  # doctest: +SKIP
        torch.Size([10002, 50])
    """
    matrix: np.ndarray | None = None
    own, found = np.zeros((2, len(vocabulary)), dtype=bool)
    indices = {word: index for index, word in enumerate(vocabulary.words) if index > UNKNOWN}
    folded: dict[str, list[int]] = {}
    for word, index in indices.items():
        folded.setdefault(word.lower(), []).append(index)
    for number, line in enumerate(iter_lines(path), start=1):
        line = line.rstrip(" ")  # lines of word2vec end with a space
        if number == 1:
            header = _header(line)
            length = header or _first_length(path, line)
            if size not in (None, length):
                hint = f"name another file, or set --embedding {length}"
                raise malformed(path, 1, f"vectors of {size} numbers", f"{length} in {line!r}", hint)
            if header:
                continue
        if matrix is None:
            matrix = np.zeros((len(vocabulary), length), dtype=np.float32)
        word, numbers = _split_line(path, number, line, length)
        if vocabulary.composed:
            word = "".join(compose(word))
        places = [index for index in folded.get(word, ()) if not found[index]]
        exact = indices.get(word)
        if exact is not None and not own[exact]:
            places.append(exact)
            own[exact] = True
        if places:
            matrix[places] = _vector(path, number, numbers)
            found[places] = True
    if matrix is None:
        raise malformed(path, 1, "a word and its vector", "none in the whole file", "name a file of word vectors")
    return WordVectors(torch.from_numpy(matrix), torch.from_numpy(found))


def vector_size(path: Path) -> int:
    """Return how many numbers a vector of a file has, from its first line.

    Raises:
        DataError: If the line is neither a word with its vector nor a header.
    """
    first = next(iter(iter_lines(path)), "").rstrip(" ")
    return _header(first) or _first_length(path, first)


def _header(line: str) -> int | None:
    """Return the size of a vector in word2vec's header; None if the line is not a header."""
    match line.split(" "):
        case [count, length] if count.isdecimal() and length.isdecimal() and int(length) > 0:
            return int(length)
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python reads 1_000


def _first_length(path: Path, line: str) -> int:
    """Count the numbers at the end of the first line; the first part is the word, even if it is a number."""
    parts = line.split(" ")
    length = 0
    while length < len(parts) - 1 and _is_number(parts[-1 - length]):
        length += 1
    if not length:
        hint = "a line is a word and its numbers, separated by spaces"
        raise malformed(path, 1, "a word and its vector", repr(line), hint)
    return length


def _split_line(path: Path, number: int, line: str, length: int) -> tuple[str, str]:
    """Separate a word from its numbers."""
    if line.count(" ") == length:
        word, _, numbers = line.partition(" ")
    else:
        parts = line.rsplit(" ", length)
        word, numbers = parts[0], " ".join(parts[1:])
        # if a word with spaces ends in a number, the line has too many numbers
        if len(parts) <= length or (" " in word and _is_number(word.rpartition(" ")[2])):
            count = sum(map(_is_number, line.split(" ")[1:]))
            hint = "every vector has the same size; check that the file is complete"
            raise malformed(path, number, f"a word and {length} numbers", f"{count} in {line!r}", hint)
    if not word:
        raise malformed(path, number, "a word before the numbers", repr(line), "a line begins with its word")
    return word, numbers


def _vector(path: Path, number: int, numbers: str) -> np.ndarray:
    """Parse the numbers of a word."""
    texts = numbers.split(" ")
    wrong = next((text for text in texts if not _is_number(text)), None)
    if wrong is not None:
        raise malformed(path, number, "a number", repr(wrong), "a line is a word and its numbers, separated by spaces")
    vector = np.array(texts, dtype=np.float32)
    finite = np.isfinite(vector)
    if not finite.all():
        said = malformed(path, number, "finite numbers", repr(texts[int(finite.argmin())]), "leave the line out")
        raise NonFiniteError(str(said))
    return vector
