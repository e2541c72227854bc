"""Word vectors from text files, as GloVe and word2vec write them: a word and its numbers on a line.

Only the vectors of a vocabulary's words are kept, so memory holds these and a line, however long the file.

- word2vec's files begin with a line of two numbers, how many words and how long a vector; GloVe's do not.
- Words may have spaces (``. . .`` in GloVe 840B): the numbers are counted from the line's end.
- A word that stands twice has its first vector.

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
from unrolled.lab.data.vocabulary import UNKNOWN, Vocabulary

__all__ = ["WordVectors", "read_vectors"]


class WordVectors(NamedTuple):
    """The vectors of a vocabulary's words, as far as a file has them."""

    matrix: Tensor
    """Shape (words, size), float32; zero where the file has none."""
    found: Tensor
    """Which words the file has, shape (words,), bool."""


def read_vectors(path: Path, vocabulary: Vocabulary, size: int | None = None) -> WordVectors:
    """Read the vectors of the words that a network knows.

    A word that the file has in lower case alone takes that vector.

    Args:
        path: the file, plain or packed with xz or gzip.
        vocabulary: the words; ``<pad>`` and ``<unk>`` have no vector.
        size: how long a vector should be; as long as the first one when left out.

    Returns:
        The vectors, and which words have one.

    Raises:
        DataError: when a line has not as many numbers as it should, or none that can be read; with file and line.
        NonFiniteError: when a number is NaN or infinite.

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
        line = line.rstrip(" ")  # word2vec ends its lines with one
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
        word, numbers = _cut(path, number, line, length)
        places = [index for index in folded.get(word, ()) if not found[index]]
        exact = indices.get(word)
        if exact is not None and not own[exact]:
            places.append(exact)
            own[exact] = True
        if places:
            matrix[places] = _vector(path, number, numbers)
            found[places] = True
    if matrix is None:
        raise malformed(path, 1, "a word and its vector", "none in the whole file", "is it the right file?")
    return WordVectors(torch.from_numpy(matrix), torch.from_numpy(found))


def _header(line: str) -> int | None:
    """Read word2vec's first line: how many words, how long a vector; None when it is no such line."""
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
    """Count the numbers at the end of the first line; a word stands before them, which may be a number itself."""
    parts = line.split(" ")
    length = 0
    while length < len(parts) - 1 and _is_number(parts[-1 - length]):
        length += 1
    if not length:
        hint = "one word a line, its numbers behind it, separated by spaces"
        raise malformed(path, 1, "a word and its vector", repr(line), hint)
    return length


def _cut(path: Path, number: int, line: str, length: int) -> tuple[str, str]:
    """Separate a word from its numbers."""
    if line.count(" ") == length:
        word, _, numbers = line.partition(" ")
    else:
        parts = line.rsplit(" ", length)
        word, numbers = parts[0], " ".join(parts[1:])
        # a word with spaces does not end in a number: more numbers than there should be do
        if len(parts) <= length or (" " in word and _is_number(word.rpartition(" ")[2])):
            count = sum(map(_is_number, line.split(" ")[1:]))
            hint = "as long as the vectors before it; is the file whole?"
            raise malformed(path, number, f"a word and {length} numbers", f"{count} in {line!r}", hint)
    if not word:
        raise malformed(path, number, "a word before the numbers", repr(line), "a line begins with its word")
    return word, numbers


def _vector(path: Path, number: int, numbers: str) -> np.ndarray:
    """Read a word's numbers."""
    texts = numbers.split(" ")
    wrong = next((text for text in texts if not _is_number(text)), None)
    if wrong is not None:
        raise malformed(path, number, "a number", repr(wrong), "one word a line, its numbers behind it")
    vector = np.array(texts, dtype=np.float32)
    finite = np.isfinite(vector)
    if not finite.all():
        said = malformed(path, number, "finite numbers", repr(texts[int(finite.argmin())]), "leave the line out")
        raise NonFiniteError(str(said))
    return vector
