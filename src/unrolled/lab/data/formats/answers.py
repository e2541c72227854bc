"""Questions and the sentences that may answer them: a candidate a line, in columns separated by tabs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Self

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Candidate, Corpus, Question, Selection
from unrolled.lab.data.formats.base import RowFormat, ValidRow
from unrolled.lab.data.reading import InvalidRow
from unrolled.lab.data.text_files import malformed, numbered_lines
from unrolled.lab.data.tokenise import tokenise

__all__ = ["Answers", "CandidateLine", "gather_questions"]

_COLUMNS = ("question", "sentence", "label")
_ANSWERS = {"0": False, "1": True}


class CandidateLine(NamedTuple):
    """A candidate as a file contains it; lines with the same ``key`` belong to the same question."""

    number: int
    key: str
    question: str
    sentence: str
    right: bool

    @classmethod
    def parse(cls, path: Path, number: int, key: str, question: str, sentence: str, label: str) -> Self:
        """Check the columns of a line: neither text is empty, and the label is 0 or 1."""
        for what, text in (("question", question), ("sentence", sentence)):
            if not text.strip():
                raise malformed(path, number, f"a {what}", "an empty column", "every line has both, and a label")
        if label not in _ANSWERS:
            hint = "1 marks a sentence that answers the question"
            raise malformed(path, number, "the label 0 or 1", repr(label), hint)
        return cls(number, key, question, sentence, _ANSWERS[label])


@dataclass(frozen=True, slots=True)
class _InvalidLine(InvalidRow):
    """A line that is no candidate."""

    question: str
    """Its first column."""
    may_be_right: bool
    """Whether its last column is anything but the label of a wrong candidate."""


def gather_questions(path: Path, lines: Iterable[CandidateLine]) -> Iterator[tuple[int, Question]]:
    """Group the candidates of each question, and yield the line at which a question begins with the question.

    DataError if the candidates of a question are not on consecutive lines.
    """
    seen: set[str] = set()
    for key, group in groupby(lines, key=lambda line: line.key):
        first, *others = group
        if key in seen:
            hint = "put all candidates of a question on consecutive lines"
            raise malformed(path, first.number, "a new question", f"{key!r} once more", hint)
        seen.add(key)
        candidates = tuple(Candidate(tuple(tokenise(line.sentence)), line.right) for line in (first, *others))
        yield first.number, Question(tuple(tokenise(first.question)), candidates)


class Answers(RowFormat[Question]):
    """Three columns, with or without a header. Questions without a right candidate are read too."""

    name = "answers"
    suffixes = (".tsv", ".tab")
    description = "question<TAB>sentence<TAB>1 for an answer, else 0; consecutive lines for each question"
    kinds = (Selection,)
    examples = "questions"

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[ValidRow[Question] | InvalidRow]:
        """Read each question with its candidates; the lines of a file that are no candidates come first."""
        for path in paths:
            lines = list(_candidate_lines(path))
            invalid = [line for line in lines if isinstance(line, _InvalidLine)]
            yield from invalid
            if invalid and not self.reading.skip_invalid:
                continue  # the file is refused for these lines, whatever the order of the others
            candidates = [line for line in lines if isinstance(line, CandidateLine)]
            asked = {line.number: line.question for line in candidates}
            lost = {line.question for line in invalid if line.may_be_right}
            for number, question in gather_questions(path, candidates):
                if question.answered or asked[number] not in lost:
                    yield ValidRow(path, number, question)
                else:
                    yield _without_answer(path, number, asked[number])


def _without_answer(path: Path, number: int, question: str) -> InvalidRow:
    """Describe a question whose right candidate may be one of the lines that are left out."""
    error = malformed(path, number, "a right candidate", f"none of {question!r}", "one may be on a line left out")
    return InvalidRow(path, number, "at the start of a question that has no right candidate left", error)


def _candidate_lines(path: Path) -> Iterator[CandidateLine | _InvalidLine]:
    for number, line in numbered_lines(path):
        cells = [cell.strip() for cell in line.split("\t")]
        if number == 1 and tuple(cell.lower() for cell in cells) == _COLUMNS:
            continue
        if len(cells) != len(_COLUMNS):
            error = malformed(path, number, "question<TAB>sentence<TAB>label", repr(line), "three columns, no quotes")
            yield _InvalidLine(path, number, "without three columns", error, cells[0], cells[-1] != "0")
            continue
        question, sentence, label = cells
        try:
            yield CandidateLine.parse(path, number, question, question, sentence, label)
        except DataError as error:
            fault = "without a question, a sentence or a label of 0 or 1"
            yield _InvalidLine(path, number, fault, error, question, label != "0")
