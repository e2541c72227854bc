"""A corpus in a few words: how large its splits are, and what an example looks like."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

from unrolled.lab.data.corpus import (
    Brackets,
    Classification,
    Corpus,
    Language,
    Question,
    Regression,
    Selection,
    Stream,
    Tagging,
    Translation,
)

__all__ = ["SplitSize", "show_example", "split_size", "split_sizes"]


@dataclass(frozen=True)
class SplitSize:
    """How large a split is, counted in two ways."""

    split: str
    count: int
    """Examples; of running text tokens."""
    what: str
    """What they are: texts, sentences, words."""
    details: str
    """What else there is to count in them."""


def split_size(split: object) -> int:
    """Count what a split has.

    Args:
        split: examples, or running text.

    Returns:
        How many examples; of running text how many tokens.
    """
    return sum(map(len, split)) if isinstance(split, Stream) else len(split)  # type: ignore[arg-type]  # a tuple


def split_sizes(corpus: Corpus[Any]) -> tuple[SplitSize, ...]:
    """Count what a corpus has.

    Args:
        corpus: of any kind.

    Returns:
        The sizes of train, dev and test.
    """
    return tuple(_size(corpus, name, getattr(corpus, name)) for name in ("train", "dev", "test"))


def _size(corpus: Corpus[Any], name: str, split: Any) -> SplitSize:
    total = split_size(split)
    match corpus:
        case Language():
            return SplitSize(name, total, f"{corpus.unit}s", f"{sum(1 for _ in split):,} lines")
        case Tagging():
            return SplitSize(name, total, "sentences", f"{sum(len(each.tokens) for each in split):,} tokens")
        case Translation():
            words = [
                sum(len(side) for side in sides) for sides in zip(*((p.source, p.target) for p in split), strict=True)
            ]
            return SplitSize(name, total, "pairs", f"{words[0]:,} words in {words[1]:,}")
        case Selection():
            answered = sum(question.answered for question in split)
            candidates = sum(len(question.candidates) for question in split)
            return SplitSize(name, total, "questions", f"{answered:,} with a right answer, {candidates:,} candidates")
        case Brackets():
            return SplitSize(name, total, "strings", f"{sum(map(len, split)) + total:,} symbols with the ends")
        case Classification():
            shares = [sum(each.label == label for each in split) for label in range(len(corpus.labels))]
            listed = ", ".join(f"{amount:,} {label}" for label, amount in zip(corpus.labels, shares, strict=True))
            return SplitSize(name, total, "texts", listed if len(shares) <= 5 else f"{len(shares)} classes")
    return SplitSize(name, total, "texts", f"{sum(len(each.tokens) for each in split):,} tokens")


def show_example(corpus: Corpus[Any]) -> str:
    """Show the first training example.

    Args:
        corpus: of any kind.

    Returns:
        It, in a line or a few.
    """
    match corpus:
        case Language():
            lines = (
                "".join(line) if corpus.unit == "character" and "<eos>" not in line else " ".join(line)
                for line in corpus.train
            )
            return "\n".join(islice((line.rstrip("\n") for line in lines if line.strip() not in ("", "<eos>")), 3))
        case Brackets():
            return " ".join(map(str, corpus.train[0]))
    first = corpus.train[0]
    match corpus:
        case Tagging():
            return " ".join(f"{token}/{tag}" for token, tag in zip(first.tokens, first.tags, strict=True))
        case Translation():
            return f"{' '.join(first.source)}\n{' '.join(first.target)}"
        case Selection():
            return _question(next((question for question in corpus.train if question.answered), first))
        case Regression():
            return f"{' '.join(first.tokens)}\n{first.rating:g}"
        case Classification():
            return f"{' '.join(first.tokens)}\n{corpus.labels[first.label]}"
    return " ".join(first.tokens)


def _question(question: Question) -> str:
    answer = next((each for each in question.candidates if each.right), question.candidates[0])
    return f"{' '.join(question.tokens)}\n{' '.join(answer.tokens)}"
