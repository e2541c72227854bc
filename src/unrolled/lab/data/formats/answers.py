"""Questions and the sentences that may answer them, in three columns separated by tabs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from unrolled.lab.data.candidates import CandidateLine, gather_questions
from unrolled.lab.data.corpus import Corpus, Question, Selection
from unrolled.lab.data.row_formats import Row, RowFormat
from unrolled.lab.data.text_files import iter_lines, malformed

__all__ = ["Answers"]

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
