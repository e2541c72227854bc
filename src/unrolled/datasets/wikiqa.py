"""WikiQA: questions that people asked a search engine, and the sentences of a Wikipedia article that may answer them.

Tables of seven columns, separated by tabs, without quotes: question's number, question, document's number and title,
sentence's number, sentence, 1 if it answers the question. The candidates of a question stand together. All questions
are read, though most have no right answer: ``Question.answered`` tells which have, and MRR and MAP are taken over
these.

Source:
    Yang, Yih and Meek (2015), WikiQA: A Challenge Dataset for Open-Domain Question Answering.
    https://aclanthology.org/D15-1237
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from unrolled.text.corpus import Candidate, DatasetSource, Question, Selection
from unrolled.text.reading import find_file, iter_lines, malformed
from unrolled.text.tokenise import tokenise

__all__ = ["WikiQa"]

_HEADER = ("QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label")
_LABELS = {"0": False, "1": True}


class WikiQa(DatasetSource):
    """Questions with their candidates."""

    name = "wikiqa"
    kind = Selection
    description = "questions and the sentences that may answer them: 2,118 / 296 / 633 questions, 1,242 answered"
    licence = "Microsoft Research data licence: for research only, not to be redistributed"
    citation = "Yang, Yih and Meek (2015), https://aclanthology.org/D15-1237"

    def read(self, folder: Path | None = None) -> Selection:
        """Read the questions.

        Args:
            folder: where ``wikiqa/WikiQA-train.tsv``, ``-dev`` and ``-test`` lie, plain or packed.

        Returns:
            The dataset, those questions included that no candidate answers.
        """
        train, dev, test = (
            _read(find_file(f"wikiqa/WikiQA-{split}.tsv", folder)) for split in ("train", "dev", "test")
        )
        return Selection(name=self.name, train=train, dev=dev, test=test)


class _Row(NamedTuple):
    line: int
    question_id: str
    question: str
    sentence: str
    right: bool


def _rows(path: Path) -> list[_Row]:
    rows = []
    for number, line in enumerate(iter_lines(path), start=1):
        cells = line.split("\t")
        if number == 1 and tuple(cells) != _HEADER:
            raise malformed(path, 1, f"the header {' '.join(_HEADER)}", repr(line), "is it a file of WikiQA?")
        if len(cells) != len(_HEADER):
            hint = "a file of WikiQA has no quotes and no tabs in texts"
            raise malformed(path, number, f"{len(_HEADER)} columns", f"{len(cells)} in {line!r}", hint)
        if number == 1:
            continue
        question_id, question, *_, sentence, label = cells
        if label not in _LABELS:
            raise malformed(path, number, "the label 0 or 1", repr(label), "1 is a sentence that answers the question")
        for what, text in (("question", question), ("sentence", sentence)):
            if not text.strip():
                raise malformed(path, number, f"a {what}", "an empty column", "is the file whole?")
        rows.append(_Row(number, question_id, question, sentence, _LABELS[label]))
    return rows


def _read(path: Path) -> tuple[Question, ...]:
    questions = []
    seen: set[str] = set()
    for question_id, group in groupby(_rows(path), key=lambda row: row.question_id):
        rows = list(group)
        if question_id in seen:
            hint = "all candidates of a question stand together"
            raise malformed(path, rows[0].line, "a new question", f"{question_id!r} once more", hint)
        seen.add(question_id)
        candidates = tuple(Candidate(tuple(tokenise(row.sentence)), row.right) for row in rows)
        questions.append(Question(tuple(tokenise(rows[0].question)), candidates))
    return tuple(questions)
