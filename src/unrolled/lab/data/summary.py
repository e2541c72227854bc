"""The sizes of a corpus's splits, and its first example as text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import Any

from unrolled.lab.data.corpus import (
    END_OF_LINE,
    Brackets,
    Classification,
    Corpus,
    Language,
    Regression,
    Selection,
    Stream,
    Tagging,
    Translation,
)

__all__ = ["SplitSize", "name_of_examples", "show_example", "split_size", "split_sizes"]


@dataclass(frozen=True)
class SplitSize:
    """The number of examples of a split (of tokens for running text), what they are, and one more count."""

    split: str
    count: int
    what: str
    details: str


def split_size(split: Any) -> int:
    """Count the examples of a split; the tokens for running text."""
    return sum(map(len, split)) if isinstance(split, Stream) else len(split)


def split_sizes(corpus: Corpus[Any]) -> tuple[SplitSize, ...]:
    """Count the examples of train, dev and test."""
    return tuple(
        SplitSize(name, split_size(split), *_count_details(corpus, split)) for name, split in corpus.splits.items()
    )


def name_of_examples(corpus: Corpus[Any]) -> str:
    """Return the plural noun for the examples of a corpus: ``texts``."""
    return _count_details(corpus, ())[0]


def _count_details(corpus: Corpus[Any], split: Any) -> tuple[str, str]:
    match corpus:
        case Language():
            return f"{corpus.unit}s", f"{sum(1 for _ in split):,} lines"
        case Tagging():
            return "sentences", f"{sum(len(each.tokens) for each in split):,} tokens"
        case Translation():
            source, target = (sum(len(getattr(pair, side)) for pair in split) for side in ("source", "target"))
            return "pairs", f"{source:,} words in {target:,}"
        case Selection():
            answered = sum(question.answered for question in split)
            candidates = sum(len(question.candidates) for question in split)
            return "questions", f"{answered:,} with a right answer, {candidates:,} candidates"
        case Brackets():
            return "strings", f"{sum(map(len, split)) + len(split):,} symbols with the ends"
        case Classification():
            counts = Counter(each.label for each in split)
            listed = ", ".join(f"{counts[number]:,} {label}" for number, label in enumerate(corpus.labels))
            return "texts", listed if len(corpus.labels) <= 5 else f"{len(corpus.labels)} classes"
    return "texts", f"{sum(len(each.tokens) for each in split):,} tokens"


def show_example(corpus: Corpus[Any]) -> str:
    """Show the first training example; three lines of running text, and a question that has an answer."""
    if isinstance(corpus, Language):
        return _first_lines(corpus)
    first = corpus.train[0]
    match corpus:
        case Brackets():
            return " ".join(map(str, first))
        case Tagging():
            return " ".join(f"{token}/{tag}" for token, tag in zip(first.tokens, first.tags, strict=True))
        case Translation():
            return f"{' '.join(first.source)}\n{' '.join(first.target)}"
        case Selection():
            question = next((question for question in corpus.train if question.answered), first)
            answer = next((each for each in question.candidates if each.right), question.candidates[0])
            return f"{' '.join(question.tokens)}\n{' '.join(answer.tokens)}"
        case Regression():
            return f"{' '.join(first.tokens)}\n{first.rating:g}"
        case Classification():
            return f"{' '.join(first.tokens)}\n{corpus.labels[first.label]}"
    return " ".join(first.tokens)


def _first_lines(corpus: Language) -> str:
    lines = (
        "".join(line) if corpus.unit == "character" and END_OF_LINE not in line else " ".join(line)
        for line in corpus.train
    )
    return "\n".join(islice((line.rstrip("\n") for line in lines if line.strip() not in ("", END_OF_LINE)), 3))
