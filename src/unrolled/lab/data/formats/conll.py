"""Tagged sentences in columns: a token a line, its tag in the last column, an empty line between sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from unrolled.lab.data.columns import read_columns, to_iobes
from unrolled.lab.data.corpus import Corpus, Tagged, Tagging
from unrolled.lab.data.row_formats import Row, RowFormat
from unrolled.lab.data.spans import is_spelled

__all__ = ["Conll"]


class Conll(RowFormat[Tagged]):
    """Two columns or more, separated by spaces or tabs; the first and the last are read.

    Tags that spell spans are BIO2, IOB1 or IOBES, recognised for each split, and become IOBES; others, such as parts of
    speech, stay as they are.
    """

    name = "conll"
    suffixes = (".conll", ".iob", ".bio")
    description = "a token and its tag on a line, an empty line between sentences; BIO2, IOB1, IOBES or plain tags"
    kinds = (Tagging,)

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[Row[Tagged]]:  # one kind
        """Read the sentences of one split; see :meth:`RowFormat.rows`.

        Args:
            paths: the split's files.
            kind: of tagged sentences.

        Yields:
            Each sentence.
        """
        found = [sentence for path in paths for sentence in read_columns(path)]
        for sentence, tagged in zip(found, to_iobes(found), strict=True):
            yield Row(sentence.path, sentence.line, tagged)

    def labels(self, value: Tagged, kind: type[Corpus[Any]]) -> Iterable[str]:  # one kind
        """Give a sentence's tags; of those that spell spans the types, since a type met once may be met in any length.

        Args:
            value: the sentence.
            kind: of tagged sentences.

        Returns:
            What must be trained on to be predicted.
        """
        return {tag[2:] for tag in value.tags if tag != "O"} if is_spelled(value.tags) else set(value.tags) - {"O"}

    def corpus(
        self,
        name: str,
        kind: type[Corpus[Any]],  # one kind
        train: Sequence[Tagged],
        dev: Sequence[Tagged],
        test: Sequence[Tagged],
    ) -> Tagging:
        """Make the corpus.

        Args:
            name: what it is called.
            kind: of tagged sentences.
            train: its sentences.
            dev: its sentences.
            test: its sentences.

        Returns:
            The corpus; whether tags spell spans is seen from the training sentences.
        """
        spelled = is_spelled(tag for sentence in train for tag in sentence.tags)
        return Tagging(name=name, train=tuple(train), dev=tuple(dev), test=tuple(test), spans=spelled)
