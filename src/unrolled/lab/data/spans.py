"""Spans of tokens, such as names in a sentence, the tags that spell them, and which tag may follow which.

A token outside every span has the tag ``O``. The other tags are a prefix and the type of the span:

- ``IOB1``: ``I-type``; but ``B-type`` for the first token of a span right after a span of the same type;
- ``BIO2``: ``B-type`` for the first token of every span, ``I-type`` for the others;
- ``IOBES``: ``S-type`` for a span of one token; ``B-type`` for the first of several, ``E-type`` for the last,
  ``I-type`` for the others.

Tags without ``E-`` and ``S-`` are IOB1 or BIO2. Two things tell these apart: an ``I-`` that begins a span is invalid in
BIO2, and most ``B-`` are invalid in IOB1. A corpus that contains both has errors. It is read in the scheme in which
fewer tags are invalid, in BIO2 for a tie, and the errors are reported.

Source:
    Ramshaw and Marcus (1995), arXiv:cmp-lg/9505040; Tjong Kim Sang and Veenstra (1999), arXiv:cs/9907006; for the
    transitions Implicit n-grams, appendix E.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from unrolled.errors import DataError

__all__ = [
    "SCHEMES",
    "InvalidTag",
    "Scheme",
    "Span",
    "TagGrammar",
    "are_span_tags",
    "convert_tags",
    "detect_scheme",
    "find_invalid_tag",
    "iobes_tags",
    "spans_to_tags",
    "tags_to_spans",
]

Scheme = Literal["BIO2", "IOB1", "IOBES"]
SCHEMES: tuple[Scheme, ...] = ("BIO2", "IOB1", "IOBES")

_TAG = re.compile(r"O|[BIES]-\S+")


class Span(NamedTuple):
    """The tokens ``[begin, end)``, and the type of the span."""

    begin: int
    end: int
    kind: str


class InvalidTag(NamedTuple):
    """A tag that a scheme does not allow at its position, counted from 0, with what is expected there and why."""

    position: int
    expected: str
    hint: str


def are_span_tags(found: Iterable[str]) -> bool:
    """Tell whether the tags of a corpus spell spans, or stand for themselves as parts of speech do.

    They spell spans if one is like ``B-PER`` and all others are too, or if one is like ``B-PER`` and one is ``O``; then
    any other tag is an error.
    """
    different = set(found)
    spelled = {tag for tag in different if tag != "O" and _TAG.fullmatch(tag)}
    return bool(spelled) and ("O" in different or spelled == different)


def detect_scheme(sentences: Iterable[Sequence[str]]) -> Scheme:
    """Return the scheme of the tags of all sentences.

    It is IOBES if there is an ``E-`` or ``S-``; IOB1 if more spans begin with ``I-`` than with a ``B-`` that IOB1 does
    not allow; else BIO2.
    """
    balance = 0
    for sentence in sentences:
        for before, tag in pairwise(("O", *sentence)):
            if tag[:2] in ("E-", "S-"):
                return "IOBES"
            if tag[:2] in ("B-", "I-") and (before == "O" or before[2:] != tag[2:]):
                balance += 1 if tag[0] == "I" else -1
    return "IOB1" if balance > 0 else "BIO2"


def find_invalid_tag(sentence: Sequence[str], scheme: Scheme) -> InvalidTag | None:
    """Return the first tag of a sentence that the scheme does not allow at its position; None if all are valid."""
    letters = "BIES" if scheme == "IOBES" else "BI"
    before = "O"
    for index, tag in enumerate(sentence):
        if tag != "O" and (not _TAG.fullmatch(tag) or tag[0] not in letters):
            listed = ", ".join(f"{letter}-" for letter in letters)
            return InvalidTag(index, f"O, or {listed} and a type", f"the scheme is {scheme}")
        if said := _invalid_after(before, tag, scheme):
            return InvalidTag(index, *said)
        before = tag
    if scheme == "IOBES" and before[0] in "BI":
        last = f"E-{before[2:]}" if before[0] == "I" else f"S-{before[2:]}"
        return InvalidTag(len(sentence) - 1, f"{last} at a sentence's end", "in IOBES a span ends with E-, or is S-")
    return None


def _invalid_after(before: str, tag: str, scheme: Scheme) -> tuple[str, str] | None:
    """Return what is expected after the tag ``before`` and why; None if ``tag`` is valid there."""
    kind, going_on = tag[2:], before[2:]
    new = kind != going_on
    if scheme == "IOBES":
        if before[0] in "BI" and (tag[0] not in "IE" or new):
            return f"I-{going_on} or E-{going_on} after {before}", "in IOBES a span of several tokens ends with E-"
        if before[0] in "OES" and tag[0] in "IE":
            return f"B-{kind} or S-{kind} after {before}", "in IOBES a span begins with B-, or is S-"
    elif scheme == "BIO2" and tag[0] == "I" and new:
        return f"B-{kind} after {before}", "in BIO2 every span begins with B-"
    elif scheme == "IOB1" and tag[0] == "B" and new:
        return f"I-{kind} after {before}", "in IOB1 a span begins with B- only right after one of the same type"
    return None


def tags_to_spans(sentence: Sequence[str], scheme: Scheme) -> tuple[Span, ...]:
    """Return the spans that the tags of a sentence spell, from left to right; DataError if a tag is invalid.

    Example:
        >>> tags_to_spans(["I-PER", "I-PER", "B-PER", "O"], "IOB1")
        (Span(begin=0, end=2, kind='PER'), Span(begin=2, end=3, kind='PER'))
    """
    fault = find_invalid_tag(sentence, scheme)
    if fault:
        tag = sentence[fault.position]
        raise DataError(f"tag {fault.position + 1}: expected {fault.expected}, found {tag!r}; {fault.hint}")
    found: list[Span] = []
    begin = 0
    before = "O"
    for index, tag in enumerate((*sentence, "O")):
        if before != "O" and (tag == "O" or tag[0] in "BS" or tag[2:] != before[2:]):
            found.append(Span(begin, index, before[2:]))
        if tag != "O" and (before == "O" or tag[0] in "BS" or tag[2:] != before[2:]):
            begin = index
        before = tag
    return tuple(found)


def spans_to_tags(found: Sequence[Span], length: int, scheme: Scheme) -> tuple[str, ...]:
    """Return the tags of a sentence of ``length`` tokens; the spans are disjoint and ordered.

    Example:
        >>> spans_to_tags([Span(0, 2, "PER"), Span(2, 3, "PER")], 4, "IOBES")
        ('B-PER', 'E-PER', 'S-PER', 'O')
    """
    spelled = ["O"] * length
    for number, (begin, end, kind) in enumerate(found):
        spelled[begin:end] = [f"I-{kind}"] * (end - begin)
        if scheme == "IOBES":
            spelled[end - 1] = f"E-{kind}"
        touches = number > 0 and found[number - 1].end == begin and found[number - 1].kind == kind
        if scheme != "IOB1" or touches:
            spelled[begin] = f"B-{kind}"
        if scheme == "IOBES" and end == begin + 1:
            spelled[begin] = f"S-{kind}"
    return tuple(spelled)


def convert_tags(sentence: Sequence[str], scheme: Scheme, to: Scheme) -> tuple[str, ...]:
    """Spell the same spans in another scheme; DataError if a tag is invalid."""
    return spans_to_tags(tags_to_spans(sentence, scheme), len(sentence), to)


@dataclass(frozen=True)
class TagGrammar:
    """Which of n tags may be first, ``after[i][j]``: whether tag j may follow tag i, and which may be last."""

    first: tuple[bool, ...]
    after: tuple[tuple[bool, ...], ...]
    last: tuple[bool, ...]

    @classmethod
    def free(cls, count: int) -> TagGrammar:
        """Allow every sequence of ``count`` tags."""
        every = (True,) * count
        return cls(every, (every,) * count, every)

    @classmethod
    def iobes(cls, tags: Sequence[str]) -> TagGrammar:
        """Allow the sequences of these tags that spell whole spans; DataError if a tag is not in the scheme IOBES.

        Example:
            >>> TagGrammar.iobes(["O", "B-PER", "E-PER"]).after
            ((True, True, False), (False, False, True), (True, True, False))
        """
        for tag in tags:
            if not _TAG.fullmatch(tag):
                raise DataError(f"{tag!r} is not a tag of IOBES; expected O, or B-, I-, E- or S- and a type")
        return cls(
            first=tuple(_may_follow("O", tag) for tag in tags),
            after=tuple(tuple(_may_follow(before, tag) for tag in tags) for before in tags),
            last=tuple(_may_follow(tag, "O") for tag in tags),
        )


def _may_follow(before: str, tag: str) -> bool:
    """Tell whether IOBES allows ``tag`` right after ``before``."""
    return _invalid_after(before, tag, "IOBES") is None


def iobes_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return ``O`` and the four tags of every type that occurs in ``tags``, types in alphabetical order."""
    kinds = sorted({tag.partition("-")[2] for tag in tags} - {""})
    return ("O", *(f"{prefix}-{kind}" for kind in kinds for prefix in "BIES"))
