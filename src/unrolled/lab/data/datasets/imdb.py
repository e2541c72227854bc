"""The Large Movie Review Dataset: long reviews that are clearly negative or positive.

Reviews with at most 4 of 10 stars are negative, those with at least 7 positive. There is a file a split with an object
a line: ``{"text": …, "label": 1, …}``. ``<br />`` in a text is read as white space. A random tenth of the training
reviews is the dev split.

Source:
    Maas et al. (2011), Learning Word Vectors for Sentiment Analysis. https://aclanthology.org/P11-1015
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Classification, Dataset, Example, hold_out
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.json_lines import read_json_objects
from unrolled.lab.data.reading import only_valid
from unrolled.lab.data.text_files import malformed
from unrolled.lab.data.tokenise import tokenise

__all__ = ["Imdb"]


class Imdb(Dataset):
    """Negative (0) or positive (1) reviews.

    Args:
        reviews: How many to read from the beginning of each file, where the classes alternate; None for all.
    """

    name = "imdb"
    kind = Classification
    description = "long film reviews, positive or negative: 22,500 / 2,500 / 25,000"
    licence = "no licence stated; for research, cite the source"
    citation = "Maas et al. (2011), https://aclanthology.org/P11-1015"

    def __init__(self, *, reviews: int | None = None) -> None:
        if reviews is not None and reviews < 1:
            raise UsageError(f"{reviews} reviews were asked for; expected 1 or more")
        self.reviews = reviews

    def read(self, folder: Path | None = None) -> Classification:
        """Read ``imdb/train.jsonl`` and ``imdb/test.jsonl``."""
        train, test = (_read(find_file(f"imdb/{split}.jsonl", folder), self.reviews) for split in ("train", "test"))
        train, dev = hold_out(train, round(len(train) / 10), lambda example: (example.label,))
        return Classification(
            name=self.name, labels=("negative", "positive"), train=tuple(train), dev=tuple(dev), test=tuple(test)
        )


def _read(path: Path, most: int | None) -> list[Example]:
    examples = []
    for number, record in islice(only_valid(read_json_objects(path)), most):
        text, label = record.get("text"), record.get("label")
        if not isinstance(text, str) or label not in (0, 1):
            raise malformed(
                path, number, 'a "text" and a "label", 0 or 1', json.dumps(record), "check that the file is complete"
            )
        examples.append(Example(tuple(tokenise(text.replace("<br />", " "))), int(label)))
    return examples
