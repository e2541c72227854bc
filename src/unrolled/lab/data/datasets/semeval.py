"""SemEval-2010 Task 8: the relation between two nominals that are marked in a sentence.

An example is four lines: ``id<TAB>"sentence"`` with ``<e1>…</e1>`` and ``<e2>…</e2>`` in it, the relation, a comment,
and an empty line. There are nine relations, each in two directions, and Other: 19 classes. A random tenth of the
training sentences is the dev split. ``Entity-Destination(e2,e1)`` occurs once and stays in the training split.

Source:
    Hendrickx et al. (2010), SemEval-2010 Task 8. https://aclanthology.org/S10-1006
"""

from __future__ import annotations

import re
from pathlib import Path

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Dataset, Example, Relations, hold_out
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.text_files import iter_lines, malformed
from unrolled.lab.data.tokenise import tokenise_marked

__all__ = ["RELATIONS", "SemEval2010"]

RELATIONS = (
    "Cause-Effect",
    "Component-Whole",
    "Content-Container",
    "Entity-Destination",
    "Entity-Origin",
    "Instrument-Agency",
    "Member-Collection",
    "Message-Topic",
    "Product-Producer",
)
"""The nine relations of the official score, which ignores Other."""
_LABELS = (*(f"{relation}({order})" for relation in RELATIONS for order in ("e1,e2", "e2,e1")), "Other")
_SENTENCE = re.compile(r'\d+\t"(.*)"\s*')
_HINT = "an example is four lines: sentence, relation, comment, empty line"


class SemEval2010(Dataset):
    """Sentences with one of 19 relations."""

    name = "semeval2010"
    kind = Relations
    description = "the relation between two marked nominals, 19 classes: 7,200 / 800 / 2,717 sentences"
    licence = "CC BY 3.0"
    citation = "Hendrickx et al. (2010), https://aclanthology.org/S10-1006"

    def read(self, folder: Path | None = None) -> Relations:
        """Read ``semeval2010_task8/TRAIN_FILE.TXT`` and ``TEST_FILE_FULL.TXT``."""
        names = ("TRAIN_FILE.TXT", "TEST_FILE_FULL.TXT")
        train, test = (_read(find_file(f"semeval2010_task8/{name}", folder)) for name in names)
        train, dev = hold_out(train, round(len(train) / 10), lambda example: (example.label,))
        return Relations(name=self.name, labels=_LABELS, train=tuple(train), dev=tuple(dev), test=tuple(test))


def _read(path: Path) -> list[Example]:
    lines = list(iter_lines(path))
    index = {label: number for number, label in enumerate(_LABELS)}
    examples = []
    for begin in range(0, len(lines), 4):
        line, relation, comment, end = (*lines[begin : begin + 4], "", "", "")[:4]
        sentence = _SENTENCE.fullmatch(line)
        if not sentence:
            raise malformed(path, begin + 1, 'number<TAB>"sentence"', repr(line), _HINT)
        if relation not in index:
            raise malformed(path, begin + 2, "one of the 19 relations", repr(relation), _HINT)
        if not comment.startswith("Comment") or end:
            raise malformed(path, begin + 3, "Comment: and an empty line", repr(comment), _HINT)
        try:
            examples.append(Example(tokenise_marked(sentence[1]), index[relation]))
        except DataError as error:
            raise DataError(f"{path}:{begin + 1}: {error}") from None
    return examples
