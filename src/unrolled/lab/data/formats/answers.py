"""Questions and the sentences that may answer them, in three columns separated by tabs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Self

from unrolled.lab.data.corpus import Candidate, Corpus, Question, Selection
from unrolled.lab.data.formats.base import Row, RowFormat
from unrolled.lab.data.text_files import iter_lines, malformed
from unrolled.lab.data.tokenise import tokenise

__all__ = ["Answers", "CandidateLine", "gather_questions"]

_HEADER = ("question", "sentence", "label")


class Answers(RowFormat[Question]):
    """A candidate a line; those of a question stand together, and a header may stand above.

    A question that no candidate answers is read like any other; what learns and judges leaves it out.
    """

    name = "answers"
    suffixes = (".tsv", ".tab")
    description = "question<TAB>sentence<TAB>1, or 0 where it is no answer; the lines of a question stand together"
    kinds = (Selection,)

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[Row[Question]]:  # one kind
        """Read the questions of one split; see :meth:`RowFormat.rows`.

        Args:
            paths: the split's files.
            kind: of questions.

        Yields:
            Each question with its candidates.

        Raises:
            DataError: when a line has not these columns, or a question comes once more.
        """
        for path in paths:
            for line, question in gather_questions(path, _lines(path)):
                yield Row(path, line, question)

    def corpus(
        self,
        name: str,
        kind: type[Corpus[Any]],  # one kind
        train: Sequence[Question],
        dev: Sequence[Question],
        test: Sequence[Question],
    ) -> Selection:
        """Make the corpus.

        Args:
            name: what it is called.
            kind: of questions.
            train: its questions.
            dev: its questions.
            test: its questions.

        Returns:
            The corpus.
        """
        return Selection(name=name, train=tuple(train), dev=tuple(dev), test=tuple(test))


def _lines(path: Path) -> Iterator[CandidateLine]:
    """Read the candidates as they are written."""
    for number, line in enumerate(iter_lines(path), start=1):
        cells = [cell.strip() for cell in line.split("\t")]
        if number == 1 and tuple(cell.lower() for cell in cells) == _HEADER:
            continue
        if len(cells) != len(_HEADER):
            raise malformed(path, number, "question<TAB>sentence<TAB>label", repr(line), "three columns, no quotes")
        question, sentence, label = cells
        yield CandidateLine.read(path, number, question, question, sentence, label)


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
