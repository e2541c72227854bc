"""WikiQA: questions to a search engine, and the sentences of a Wikipedia article that may answer them.

Tables of seven columns separated by tabs, without quotes: the question's number, the question, the document's number
and title, the sentence's number, the sentence, and 1 if it answers the question. All questions are read, though most
have no right answer (``Question.answered`` tells which have one).

Source:
    Yang, Yih and Meek (2015), WikiQA: A Challenge Dataset for Open-Domain Question Answering.
    https://aclanthology.org/D15-1237
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unrolled.lab.data.corpus import Dataset, Question, Selection
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.formats.answers import CandidateLine, gather_questions
from unrolled.lab.data.text_files import iter_lines, malformed

__all__ = ["WikiQa"]

_WIKIQA_COLUMNS = ("QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label")


class WikiQa(Dataset):
    """Questions with their candidates."""

    name = "wikiqa"
    kind = Selection
    description = "questions and the sentences that may answer them: 2,118 / 296 / 633 questions, 1,242 answered"
    licence = "Microsoft Research data licence: for research only, not to be redistributed"
    citation = "Yang, Yih and Meek (2015), https://aclanthology.org/D15-1237"

    def read(self, folder: Path | None = None) -> Selection:
        """Read ``wikiqa/WikiQA-train.tsv``, ``-dev.tsv`` and ``-test.tsv``."""
        train, dev, test = (
            _read(find_file(f"wikiqa/WikiQA-{split}.tsv", folder)) for split in ("train", "dev", "test")
        )
        return Selection(name=self.name, train=train, dev=dev, test=test)


def _candidate_lines(path: Path) -> Iterator[CandidateLine]:
    for number, line in enumerate(iter_lines(path), start=1):
        cells = line.split("\t")
        if number == 1 and tuple(cells) != _WIKIQA_COLUMNS:
            raise malformed(path, 1, f"the header {' '.join(_WIKIQA_COLUMNS)}", repr(line), "name a file of WikiQA")
        if len(cells) != len(_WIKIQA_COLUMNS):
            hint = "a file of WikiQA has no quotes and no tabs in texts"
            raise malformed(path, number, f"{len(_WIKIQA_COLUMNS)} columns", f"{len(cells)} in {line!r}", hint)
        if number == 1:
            continue
        question_id, question, *_, sentence, label = cells
        yield CandidateLine.parse(path, number, question_id, question, sentence, label)


def _read(path: Path) -> tuple[Question, ...]:
    return tuple(question for _, question in gather_questions(path, _candidate_lines(path)))
