"""Texts longer than a bound: cut, left out or refused, as the user chooses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar, cast

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.corpus import (
    Brackets,
    Candidate,
    Corpus,
    Examples,
    Question,
    Relations,
    SentencePair,
    TaggedSentence,
)
from unrolled.lab.data.spans import are_span_tags
from unrolled.lab.data.tokenise import ENTITY_MARKERS

__all__ = ["Longer", "cut_long", "limit_length", "longest_text"]

Longer = Literal["cut", "skip", "refuse"]
C = TypeVar("C", bound=Corpus[Any])
_ENDS = ("O", "E-", "S-")


def limit_length(corpus: C, most: int, longer: Longer) -> C:
    """Bound the lengths of all texts of a corpus, in tokens.

    Args:
        corpus: A corpus of examples; running text is read in windows and needs no bound.
        most: The largest number of tokens of a text.
        longer: Whether a longer text loses its end, its example is left out, or the corpus is refused. A span of a
            tagged sentence is cut off whole.

    Returns:
        The corpus, with a note that counts what was cut or left out.

    Raises:
        UsageError: If the corpus is running text, or its texts cannot be cut: bracket strings, and texts that would
            lose a marked entity.
        DataError: If a text is longer and ``longer`` is ``"refuse"``, or a split is empty afterwards.
    """
    if not isinstance(corpus, Examples):
        raise UsageError(f"max_length is {most}, but running text is read in windows of bptt tokens; leave it out")
    if longer == "cut" and isinstance(corpus, Brackets):
        raise UsageError("a string of brackets cannot be cut; choose --longer skip or --longer refuse")
    counts: dict[str, int] = {}
    splits: dict[str, Any] = {}
    for name, examples in corpus.splits.items():
        over = [longest_text(example) > most for example in examples]
        counts[name] = sum(over)
        if longer == "refuse" and any(over):
            raise _refusal(f"{corpus.name}, {name}", examples, over, most)
        pairs = zip(examples, over, strict=True)
        if longer == "skip":
            splits[name] = tuple(example for example, long in pairs if not long)
        else:
            marked = isinstance(corpus, Relations)
            splits[name] = tuple(_cut(example, most, marked) if long else example for example, long in pairs)
        if not splits[name]:
            raise DataError(f"{corpus.name}: no {name} example has at most {most:,} tokens; raise --max-length")
    if not any(counts.values()):
        return corpus
    did = "cut" if longer == "cut" else "left out"
    listed = ", ".join(f"{count:,} of {name}" for name, count in counts.items() if count)
    note = f"{corpus.name}: {did}, since they have a text longer than {most:,} tokens: {listed}"
    return cast("C", replace(corpus, **splits, notes=(*corpus.notes, note)))


def _refusal(split: str, examples: Sequence[Any], over: Sequence[bool], most: int) -> DataError:
    """Return the error about a split with longer texts."""
    first = over.index(True)
    return DataError(
        f"{split}: {sum(over):,} of {len(over):,} examples have a text longer than {most:,} tokens, the first is "
        f"example {first + 1:,} with {longest_text(examples[first]):,}; raise --max-length, or choose --longer cut or "
        "skip"
    )


def cut_long(examples: Sequence[Any], most: int) -> Iterator[Any]:
    """Cut the examples with a text of more than ``most`` tokens, as :func:`limit_length` does where it can."""
    for example in examples:
        yield example if longest_text(example) <= most else _cut(example, most, marked=False)


def longest_text(example: Any) -> int:
    """Return the number of tokens of the longest text of an example."""
    match example:
        case SentencePair():
            return max(len(example.source), len(example.target))
        case Question():
            return max(len(example.tokens), *(len(each.tokens) for each in example.candidates))
        case tuple():
            return len(example)
    return len(example.tokens)


def _cut(example: Any, most: int, marked: bool) -> Any:
    match example:
        case SentencePair():
            return SentencePair(example.source[:most], example.target[:most])
        case Question():
            candidates = tuple(Candidate(each.tokens[:most], each.right) for each in example.candidates)
            return Question(example.tokens[:most], candidates)
        case TaggedSentence():
            return _cut_sentence(example, most)
    if marked and not set(ENTITY_MARKERS) <= set(example.tokens[:most]):
        raise UsageError(
            f"a text of {len(example.tokens):,} tokens would lose an entity if it were cut to {most:,}; "
            "raise --max-length, or choose --longer skip"
        )
    return replace(example, tokens=example.tokens[:most])


def _cut_sentence(sentence: TaggedSentence, most: int) -> TaggedSentence:
    """Cut a sentence; a span that is open where it is cut loses its tags."""
    tags = sentence.tags[:most]
    if are_span_tags(sentence.tags) and not tags[-1].startswith(_ENDS):
        end = next((place for place in reversed(range(most)) if tags[place].startswith(_ENDS)), -1) + 1
        tags = (*tags[:end], *("O" for _ in tags[end:]))
    return TaggedSentence(sentence.tokens[:most], tags)
