"""Questions and the sentences that may answer them, in three columns separated by tabs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.text.corpus import Candidate, Corpus, Question, Selection
from unrolled.text.reading import iter_lines, malformed
from unrolled.text.rows import Row, RowFormat
from unrolled.text.tokenise import tokenise

__all__ = ["Answers"]

_HEADER = ("question", "sentence", "label")
_LABELS = {"0": False, "1": True}


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
            seen: set[str] = set()
            for question, group in groupby(_lines(path), key=lambda line: line.question):
                lines = list(group)
                if question in seen:
                    hint = "all candidates of a question stand together"
                    raise malformed(path, lines[0].number, "a new question", f"{question!r} once more", hint)
                seen.add(question)
                candidates = tuple(Candidate(tuple(tokenise(line.sentence)), line.right) for line in lines)
                yield Row(path, lines[0].number, Question(tuple(tokenise(question)), candidates))

    def labels(self, value: Question, kind: type[Corpus[Any]]) -> Iterable[str]:  # the base class's signature
        """Give nothing: any question may be asked.

        Args:
            value: the question.
            kind: of questions.

        Returns:
            Nothing.
        """
        return ()

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


class _Line(NamedTuple):
    number: int
    question: str
    sentence: str
    right: bool


def _lines(path: Path) -> Iterator[_Line]:
    """Read the candidates as they are written."""
    for number, line in enumerate(iter_lines(path), start=1):
        cells = [cell.strip() for cell in line.split("\t")]
        if number == 1 and tuple(cell.lower() for cell in cells) == _HEADER:
            continue
        if len(cells) != len(_HEADER):
            raise malformed(path, number, "question<TAB>sentence<TAB>label", repr(line), "three columns, no quotes")
        question, sentence, label = cells
        for what, text in (("question", question), ("sentence", sentence)):
            if not text:
                raise malformed(path, number, f"a {what}", "an empty column", "every line has both, and a label")
        if label not in _LABELS:
            raise malformed(path, number, "the label 0 or 1", repr(label), "1 is a sentence that answers the question")
        yield _Line(number, question, sentence, _LABELS[label])
