"""Phrases inside sentences, each with what people, or a grammar, say of its sentiment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Self

import torch
from torch import Tensor

from unrolled.lab.data.corpus import Example
from unrolled.lab.data.datasets.negation import POSITIVE
from unrolled.lab.data.datasets.sst import Node, Tree
from unrolled.lab.papers.framework.bootstrap import Correlation, correlate

__all__ = ["Phrases", "negation_trees"]

_NEUTRAL = 2
_EXTREME = 2


@dataclass(frozen=True)
class Phrases:
    """Labelled phrases of some sentences: of two words or more, and none of them the whole sentence."""

    sentences: tuple[tuple[str, ...], ...]
    places: Tensor
    """Sentence, first token and one past the last of each phrase, shape (phrases, 3), int64."""
    labels: Tensor
    """From -2, very negative, to 2, shape (phrases,), float64."""

    @classmethod
    def from_trees(cls, trees: Sequence[Tree]) -> Self:
        """Gather the phrases of labelled trees.

        Args:
            trees: of the sentences.

        Returns:
            Their phrases, sentence by sentence; a span that has two nodes, one inside the other, counts once.
        """
        rows, labels = [], []
        for number, tree in enumerate(trees):
            # parts come before wholes, so the outer node of a span is the one that stays
            spans = {(node.start, node.stop): node.label for node in tree.nodes}
            for (start, stop), label in spans.items():
                if 2 <= stop - start < len(tree.tokens):
                    rows.append((number, start, stop))
                    labels.append(float(label - _NEUTRAL))
        places = torch.tensor(rows, dtype=torch.int64).reshape(-1, 3)
        return cls(tuple(tree.tokens for tree in trees), places, torch.tensor(labels, dtype=torch.float64))

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def lengths(self) -> Tensor:
        """How many words each has, shape (phrases,)."""
        return self.places[:, 2] - self.places[:, 1]

    @cached_property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The words of each phrase alone."""
        return tuple(self.sentences[sentence][start:stop] for sentence, start, stop in self.places.tolist())

    def first(self) -> Self:
        """Keep the phrases of the first sentence that has any.

        Returns:
            The same kind of record, of the sentences up to that one.
        """
        last = int(self.places[0, 0])
        kept = self.places[:, 0] == last
        return type(self)(self.sentences[: last + 1], self.places[kept], self.labels[kept])

    def prefixes(self) -> tuple[tuple[tuple[str, ...], ...], Tensor]:
        """Cut every sentence off where a phrase ends.

        Returns:
            The different beginnings of sentences, and which of them belongs to each phrase, shape (phrases,).
        """
        ends, which = self.places[:, (0, 2)].unique(dim=0, return_inverse=True)
        return tuple(self.sentences[sentence][:stop] for sentence, stop in ends.tolist()), which

    def between(self, low: int, high: int | None) -> Tensor:
        """Find the phrases of some lengths.

        Args:
            low: the fewest words.
            high: the most; None for no bound.

        Returns:
            Which they are, shape (phrases,), bool.
        """
        return (self.lengths >= low) & (self.lengths <= (self.lengths.max() if high is None else high))

    def agreement(
        self, scores: Tensor, *, which: Tensor | None = None, ranked: bool = False, draws: int = 500
    ) -> Correlation:
        """Correlate scores of the phrases with their labels; resamples draw sentences.

        Args:
            scores: shape (phrases,).
            which: the phrases that count, shape (phrases,), bool; all when left out.
            ranked: whether Spearman's correlation is wanted, not Pearson's.
            draws: how many resamples.

        Returns:
            The correlation.
        """
        rows = (scores, self.labels, self.places[:, 0])
        chosen = rows if which is None else tuple(row[which] for row in rows)
        return correlate(*chosen, ranked=ranked, draws=draws)


def negation_trees(examples: Iterable[Example]) -> list[Tree]:
    """Label the phrases of made-up reviews that end in "not not charming": each "not" turns what follows it around.

    Args:
        examples: of the negation corpus.

    Returns:
        A tree a sentence. Its first two words are neutral, and so is every word before the negations.
    """
    trees = []
    for example in examples:
        tokens, end = example.tokens, len(example.tokens)
        polarity = 1 if tokens[-1] in POSITIVE else -1
        nots = sum(1 for _ in takewhile("not".__eq__, reversed(tokens[:-1])))
        nodes = [Node(0, 2, _NEUTRAL)]
        nodes += [Node(end - 1 - n, end, _NEUTRAL + _EXTREME * polarity * (-1) ** n) for n in range(nots + 1)]
        whole = nodes[-1].label
        nodes += [Node(end - 2 - nots, end, whole), Node(0, end, whole)]
        trees.append(Tree(tokens, tuple(nodes)))
    return trees
