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

from collections.abc import Iterator
from pathlib import Path

from unrolled.lab.data.corpus import Dataset, Question, Selection
from unrolled.lab.data.formats.answers import CandidateLine, gather_questions
from unrolled.lab.data.text_files import find_file, iter_lines, malformed

__all__ = ["WikiQa"]

_HEADER = ("QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label")


class WikiQa(Dataset):
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


def _lines(path: Path) -> Iterator[CandidateLine]:
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
        yield CandidateLine.read(path, number, question_id, question, sentence, label)


def _read(path: Path) -> tuple[Question, ...]:
    return tuple(question for _, question in gather_questions(path, _lines(path)))
