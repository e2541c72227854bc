"""Sentiment Labelled Sentences: three times a thousand sentences of reviews, of products, films and restaurants.

A line is ``sentence<TAB>0`` or ``1``, half of each; sentences were chosen that are clearly positive or negative.
There is no official split: of each file a tenth, drawn at random, is kept for dev, and a tenth for test. A handful of
sentences occur twice (10, 3 and 4); they are examples like any other.

Source:
    Kotzias et al. (2015), From Group to Individual Labels using Deep Features. doi:10.1145/2783258.2783380
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from unrolled.lab.data.corpus import Classification, Dataset, Example
from unrolled.lab.data.hold_out import hold_out
from unrolled.lab.data.text_files import find_file, iter_lines, malformed
from unrolled.lab.data.tokenise import tokenise

__all__ = ["UciAmazon", "UciImdb", "UciYelp"]


class _Sentences(Dataset):
    kind = Classification
    licence = "CC BY 4.0"
    citation = "Kotzias et al. (2015), doi:10.1145/2783258.2783380"

    @property
    @abstractmethod
    def file(self) -> str:
        """The file's name."""

    def read(self, folder: Path | None = None) -> Classification:
        """Read the sentences and split them.

        Args:
            folder: where the folder ``uci_sentiment`` lies, its files plain or packed.

        Returns:
            The dataset; labels are 0 for negative and 1 for positive.
        """
        train = _read(find_file(f"uci_sentiment/{self.file}", folder))
        tenth = len(train) // 10
        train, dev = hold_out(train, tenth, lambda example: (example.label,))
        train, test = hold_out(train, tenth, lambda example: (example.label,))
        return Classification(
            name=self.name, labels=("negative", "positive"), train=tuple(train), dev=tuple(dev), test=tuple(test)
        )


class UciAmazon(_Sentences):
    """Reviews of products."""

    name = "uci-amazon"
    description = "sentences from product reviews, positive or negative: 800 / 100 / 100"
    file = "amazon_cells_labelled.txt"


class UciImdb(_Sentences):
    """Reviews of films."""

    name = "uci-imdb"
    description = "sentences from film reviews, positive or negative: 800 / 100 / 100"
    file = "imdb_labelled.txt"


class UciYelp(_Sentences):
    """Reviews of restaurants."""

    name = "uci-yelp"
    description = "sentences from restaurant reviews, positive or negative: 800 / 100 / 100"
    file = "yelp_labelled.txt"


def _read(path: Path) -> list[Example]:
    examples = []
    for number, line in enumerate(iter_lines(path), start=1):
        text, _, label = line.rpartition("\t")
        if not text.strip() or label not in {"0", "1"}:
            raise malformed(path, number, "sentence<TAB>0 or 1", repr(line), "is the file whole?")
        examples.append(Example(tuple(tokenise(text)), int(label)))
    return examples
