"""Phrases inside sentences, each with a sentiment label from annotators or from a grammar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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

__all__ = ["LENGTH_RANGES", "LabelledPhrases", "Texts", "negation_trees", "range_name"]

LENGTH_RANGES = ((2, 2), (3, 4), (5, 8), (9, 16), (17, None))
"""Least and greatest number of words of a phrase in each range; None for no limit."""
Texts = Sequence[Sequence[str]]
_NEUTRAL = 2
_EXTREME = 2


def range_name(low: int, high: int | None) -> str:
    """Name one of :data:`LENGTH_RANGES`."""
    return f"{low}" if high == low else f"{low} or more" if high is None else f"{low} to {high}"


@dataclass(frozen=True)
class LabelledPhrases:
    """Phrases of two words or more that are not the whole sentence."""

    sentences: tuple[tuple[str, ...], ...]
    places: Tensor
    """Sentence, first token, and one past the last token of each phrase, shape (phrases, 3), int64."""
    labels: Tensor
    """From -2 (very negative) to 2 (very positive), shape (phrases,), float64."""

    @classmethod
    def from_trees(cls, trees: Sequence[Tree]) -> Self:
        """Collect the phrases of labelled trees; a span with two nodes, one inside the other, counts once."""
        rows, labels = [], []
        for number, tree in enumerate(trees):
            # parts come before wholes, so the dictionary keeps the outer node of a span
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
        """The number of words of each phrase, shape (phrases,)."""
        return self.places[:, 2] - self.places[:, 1]

    @cached_property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The words of each phrase."""
        return tuple(self.sentences[sentence][start:stop] for sentence, start, stop in self.places.tolist())

    def first(self) -> Self:
        """Keep the phrases of the first sentence that has any, and the sentences up to that one."""
        last = int(self.places[0, 0])
        kept = self.places[:, 0] == last
        return type(self)(self.sentences[: last + 1], self.places[kept], self.labels[kept])

    def prefixes(self) -> tuple[tuple[tuple[str, ...], ...], Tensor]:
        """Cut sentences off where a phrase ends: the distinct prefixes, and the index of each phrase's prefix."""
        ends, which = self.places[:, (0, 2)].unique(dim=0, return_inverse=True)
        return tuple(self.sentences[sentence][:stop] for sentence, stop in ends.tolist()), which

    def sums(self, attribute: Callable[[Texts], Iterable[tuple[Tensor, Tensor]]], *, to_the_end: bool) -> Tensor:
        """Sum attributions to words over each phrase, shape (phrases,).

        ``attribute`` gives those of some texts at a time: their indices, and values of shape (texts, time). It gets
        the sentences if ``to_the_end``, else each sentence up to the end of a phrase.
        """
        texts, text_of = (self.sentences, self.places[:, 0]) if to_the_end else self.prefixes()
        longest = max(map(len, texts))
        before = torch.zeros(len(texts), longest + 1, dtype=torch.float64)  # of all words before each place
        for which, values in attribute(texts):
            found = values.double().cumsum(dim=1)
            before[which, 1 : found.shape[1] + 1] = found
        return before[text_of, self.places[:, 2]] - before[text_of, self.places[:, 1]]

    def of_length(self, low: int, high: int | None) -> Tensor:
        """Find the phrases of ``low`` to ``high`` words, shape (phrases,), bool."""
        return (self.lengths >= low) & (self.lengths <= (self.lengths.max() if high is None else high))

    def agreement(
        self, scores: Tensor, *, which: Tensor | None = None, ranked: bool = False, draws: int = 500
    ) -> Correlation:
        """Correlate scores with labels (Spearman if ``ranked``, else Pearson); resamples draw whole sentences.

        ``scores`` has the shape (phrases,); the mask ``which`` selects the phrases that count.
        """
        rows = (scores, self.labels, self.places[:, 0])
        chosen = rows if which is None else tuple(row[which] for row in rows)
        return correlate(*chosen, ranked=ranked, draws=draws)


def negation_trees(examples: Iterable[Example]) -> list[Tree]:
    """Label the phrases of the negation corpus: each "not" reverses the label of what follows it.

    The first two words of a sentence are neutral, and so is every word before the negations.
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
