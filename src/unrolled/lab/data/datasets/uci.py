"""Sentiment Labelled Sentences: a thousand sentences each from reviews of products, films and restaurants.

A line is ``sentence<TAB>0`` or ``1``, half of each. The sentences are clearly positive or negative. There is no
official split: a random tenth of each file is the dev split, and another the test split. A few sentences occur twice
(10, 3 and 4).

Source:
    Kotzias et al. (2015), From Group to Individual Labels using Deep Features. doi:10.1145/2783258.2783380
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from unrolled.lab.data.corpus import Classification, Dataset, Example, hold_out
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.text_files import iter_lines, malformed
from unrolled.lab.data.tokenise import tokenise

__all__ = ["UciAmazon", "UciImdb", "UciYelp"]


class _UciSentences(Dataset):
    kind = Classification
    licence = "CC BY 4.0"
    citation = "Kotzias et al. (2015), doi:10.1145/2783258.2783380"

    file: ClassVar[str]

    def read(self, folder: Path | None = None) -> Classification:
        """Read the file and split it; labels are 0 for negative and 1 for positive."""
        train = _read(find_file(f"uci_sentiment/{self.file}", folder))
        tenth = len(train) // 10
        train, dev = hold_out(train, tenth, lambda example: (example.label,))
        train, test = hold_out(train, tenth, lambda example: (example.label,))
        return Classification(
            name=self.name, labels=("negative", "positive"), train=tuple(train), dev=tuple(dev), test=tuple(test)
        )


class UciAmazon(_UciSentences):
    """Reviews of products."""

    name = "uci-amazon"
    description = "sentences from product reviews, positive or negative: 800 / 100 / 100"
    file = "amazon_cells_labelled.txt"


class UciImdb(_UciSentences):
    """Reviews of films."""

    name = "uci-imdb"
    description = "sentences from film reviews, positive or negative: 800 / 100 / 100"
    file = "imdb_labelled.txt"


class UciYelp(_UciSentences):
    """Reviews of restaurants."""

    name = "uci-yelp"
    description = "sentences from restaurant reviews, positive or negative: 800 / 100 / 100"
    file = "yelp_labelled.txt"


def _read(path: Path) -> list[Example]:
    examples = []
    for number, line in enumerate(iter_lines(path), start=1):
        text, _, label = line.rpartition("\t")
        if not text.strip() or label not in {"0", "1"}:
            raise malformed(path, number, "sentence<TAB>0 or 1", repr(line), "check that the file is complete")
        examples.append(Example(tuple(tokenise(text)), int(label)))
    return examples
