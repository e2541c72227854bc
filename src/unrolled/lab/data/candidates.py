"""Lines that say of one sentence whether it answers a question, and the questions that they make up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Self

from unrolled.lab.data.corpus import Candidate, Question
from unrolled.lab.data.text_files import malformed
from unrolled.lab.data.tokenise import tokenise

__all__ = ["CandidateLine", "gather_questions"]

_LABELS = {"0": False, "1": True}


class CandidateLine(NamedTuple):
    """One candidate as it is written."""

    number: int
    """Of the line, from 1."""
    key: str
    """What tells its question from others: the question itself, where it has no number."""
    question: str
    sentence: str
    right: bool

    @classmethod
    def read(cls, path: Path, number: int, key: str, question: str, sentence: str, label: str) -> Self:
        """Check what a line says.

        Args:
            path: of the file.
            number: of the line, from 1.
            key: what tells the question from others.
            question: as it is written.
            sentence: as it is written.
            label: as it is written.

        Returns:
            The line.

        Raises:
            DataError: when question or sentence is empty, or the label is not 0 or 1.
        """
        for what, text in (("question", question), ("sentence", sentence)):
            if not text.strip():
                raise malformed(path, number, f"a {what}", "an empty column", "every line has both, and a label")
        if label not in _LABELS:
            raise malformed(path, number, "the label 0 or 1", repr(label), "1 is a sentence that answers the question")
        return cls(number, key, question, sentence, _LABELS[label])


def gather_questions(path: Path, lines: Iterable[CandidateLine]) -> Iterator[tuple[int, Question]]:
    """Put the candidates of each question together.

    Args:
        path: of the file.
        lines: its candidates, in its order.

    Yields:
        The line at which a question begins, and the question.

    Raises:
        DataError: when the candidates of a question do not stand together.
    """
    seen: set[str] = set()
    for key, group in groupby(lines, key=lambda line: line.key):
        first, *others = group
        if key in seen:
            hint = "all candidates of a question stand together"
            raise malformed(path, first.number, "a new question", f"{key!r} once more", hint)
        seen.add(key)
        candidates = tuple(Candidate(tuple(tokenise(line.sentence)), line.right) for line in (first, *others))
        yield first.number, Question(tuple(tokenise(first.question)), candidates)
