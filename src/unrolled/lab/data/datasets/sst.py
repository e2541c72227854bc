r"""The Stanford Sentiment Treebank: every phrase of a review sentence with its human label.

A tree a line, ``(3 (2 It) (4 (2 's) (4 lovely)))``: every node has a label from 0 (very negative) to 4 (very positive),
then a word or its parts. Three properties of the files matter:

- words are separated by plain spaces only: three of them contain a no-break space (``2 1\/2``);
- brackets are written ``-LRB-`` and ``-RRB-``, slashes and stars ``\/`` and ``\*``; they are read as the characters
  that they represent, so that a model knows them when a person types them;
- every node is a labelled phrase, so all phrases of a sentence are training examples; the datasets that end in
  ``-sentences`` train on whole sentences only.

Source:
    Socher et al. (2013), Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank.
    https://aclanthology.org/D13-1170
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Classification, Corpus, Dataset, Example, RatedText, Regression
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.text_files import iter_lines

__all__ = [
    "Node",
    "Sst2",
    "Sst2Sentences",
    "Sst5",
    "Sst5Sentences",
    "SstRegression",
    "SstRegressionSentences",
    "Tree",
    "parse_tree",
    "read_trees",
]

_PIECE = re.compile(r"[()]|[^() ]+")
_ESCAPED = re.compile(r"\\([/*])")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")"}
_LABELS = frozenset("01234")
_NEUTRAL = 2


@dataclass(frozen=True, slots=True)
class Node:
    """A phrase of a tree: the tokens ``[start, stop)`` and their label, 0 to 4."""

    start: int
    stop: int
    label: int


@dataclass(frozen=True)
class Tree:
    """A sentence and the labels of all its phrases."""

    tokens: tuple[str, ...]
    nodes: tuple[Node, ...]
    """A phrase is after its parts; the last is the sentence."""

    @property
    def label(self) -> int:
        """The label of the sentence."""
        return self.nodes[-1].label


def parse_tree(line: str) -> Tree:
    """Parse one tree in brackets; DataError if the line is not one whole tree."""
    tokens: list[str] = []
    nodes: list[Node] = []
    open_nodes: list[tuple[int, int]] = []  # (label, first token) of each bracket not yet closed
    pieces = iter(_PIECE.findall(line))
    for piece in pieces:
        if nodes and not open_nodes:
            raise DataError(f"expected the line to end after the tree, found {piece!r}")
        if piece == "(":
            label = next(pieces, "the line's end")
            if label not in _LABELS:
                raise DataError(f"expected a label from 0 to 4 after '(', found {label!r}")
            open_nodes.append((int(label), len(tokens)))
        elif not open_nodes:
            raise DataError(f"expected '(', found {piece!r}")
        elif piece == ")":
            label_of, start = open_nodes.pop()
            if start == len(tokens):
                raise DataError("expected a word or a tree after the label, found ')'")
            nodes.append(Node(start, len(tokens), label_of))
        else:
            tokens.append(_BRACKETS.get(piece) or _ESCAPED.sub(r"\1", piece))
    if open_nodes:
        raise DataError(f"expected {len(open_nodes)} more ')' before the line's end")
    if not nodes:
        raise DataError("expected a tree, found an empty line")
    return Tree(tuple(tokens), tuple(nodes))


def read_trees(path: Path) -> list[Tree]:
    """Read a file of trees, one a line; DataError, with file and line, if a line is not a tree."""
    trees = []
    for number, line in enumerate(iter_lines(path), start=1):
        try:
            trees.append(parse_tree(line))
        except DataError as error:
            raise DataError(f"{path}:{number}: {error}") from None
    return trees


Phrase = tuple[tuple[str, ...], int]
"""Tokens and their label, 0 to 4."""


class _Phrases(Dataset):
    """Trains on every phrase of the training trees; dev and test are whole sentences."""

    licence = "no licence stated; for research, cite the source"
    citation = "Socher et al. (2013), https://aclanthology.org/D13-1170"

    def read(self, folder: Path | None = None) -> Corpus[Any]:
        """Read ``sst/train.txt``, ``sst/dev.txt`` and ``sst/test.txt``."""
        paths = [find_file(f"sst/{split}.txt", folder) for split in ("train", "dev", "test")]
        train, dev, test = map(read_trees, paths)
        return self._corpus(
            [phrase for tree in train for phrase in self._training_phrases(tree)],
            [_phrase(tree, tree.nodes[-1]) for tree in dev],
            [_phrase(tree, tree.nodes[-1]) for tree in test],
        )

    def _training_phrases(self, tree: Tree) -> Iterable[Phrase]:
        """Return the training examples of a tree."""
        return (_phrase(tree, node) for node in tree.nodes)

    @abstractmethod
    def _corpus(self, *splits: Sequence[Phrase]) -> Corpus[Any]:
        """Build the corpus from phrases with the five labels."""


class _Sentences:
    """Trains on whole sentences only."""

    def _training_phrases(self, tree: Tree) -> Iterable[Phrase]:
        return (_phrase(tree, tree.nodes[-1]),)


def _phrase(tree: Tree, node: Node) -> Phrase:
    return tree.tokens[node.start : node.stop], node.label


class Sst2(_Phrases):
    """Positive or negative, without neutral phrases."""

    name = "sst2"
    kind = Classification
    description = "film reviews, positive or negative: 98,794 phrases to train on, 872 / 1,821 sentences"

    def _corpus(self, *splits: Sequence[Phrase]) -> Classification:
        train, dev, test = (
            tuple(Example(tokens, int(label > _NEUTRAL)) for tokens, label in split if label != _NEUTRAL)
            for split in splits
        )
        return Classification(name=self.name, labels=("negative", "positive"), train=train, dev=dev, test=test)


class Sst2Sentences(_Sentences, Sst2):
    """Positive or negative, without the sentences' phrases."""

    name = "sst2-sentences"
    description = "film reviews, positive or negative: 6,920 / 872 / 1,821 sentences"


class Sst5(_Phrases):
    """The five labels as classes."""

    name = "sst5"
    kind = Classification
    description = "film reviews, five degrees: 318,582 phrases to train on, 1,101 / 2,210 sentences"

    def _corpus(self, *splits: Sequence[Phrase]) -> Classification:
        labels = ("very negative", "negative", "neutral", "positive", "very positive")
        train, dev, test = (tuple(Example(tokens, label) for tokens, label in split) for split in splits)
        return Classification(name=self.name, labels=labels, train=train, dev=dev, test=test)


class Sst5Sentences(_Sentences, Sst5):
    """The five labels as classes, without the sentences' phrases."""

    name = "sst5-sentences"
    description = "film reviews, five degrees: 8,544 / 1,101 / 2,210 sentences"


class SstRegression(_Phrases):
    """The five labels as numbers, from -2 to 2."""

    name = "sst-regression"
    kind = Regression
    description = "film reviews rated -2 to 2: 318,582 phrases to train on, 1,101 / 2,210 sentences"

    def _corpus(self, *splits: Sequence[Phrase]) -> Regression:
        train, dev, test = (
            tuple(RatedText(tokens, float(label - _NEUTRAL)) for tokens, label in split) for split in splits
        )
        return Regression(name=self.name, train=train, dev=dev, test=test)


class SstRegressionSentences(_Sentences, SstRegression):
    """The labels as numbers, without the sentences' phrases."""

    name = "sst-regression-sentences"
    description = "film reviews rated -2 to 2: 8,544 / 1,101 / 2,210 sentences"
