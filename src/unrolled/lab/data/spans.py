"""Spans of tokens, such as the names in a sentence, and the tags that spell them.

A token outside of every span has the tag ``O``; the others say the span's kind behind a letter:

- ``IOB1``: ``I-kind``; the first of a span has ``B-kind`` if a span of the same kind ends right before it;
- ``BIO2``: the first of every span has ``B-kind``, the others ``I-kind``;
- ``IOBES``: a span of one token has ``S-kind``; of several the first ``B-kind``, the last ``E-kind``, the others
  ``I-kind``.

Tags without ``E-`` and ``S-`` are IOB1 or BIO2. They differ in an ``I-`` with no beginning, which begins a span in IOB1
and is a mistake in BIO2, and in a ``B-`` that IOB1 would not write. A corpus with the one and not the other is IOB1,
with the other and not the one BIO2; one with neither reads the same in both. A corpus with both has mistakes: it is
taken for the scheme that leaves fewer of them, BIO2 when there are equally many, and they are reported.

Source:
    Ramshaw and Marcus (1995), arXiv:cmp-lg/9505040; Tjong Kim Sang and Veenstra (1999), arXiv:cs/9907006.
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
    """Some tokens in a row."""

    begin: int
    end: int
    """Behind the last."""
    kind: str


class InvalidTag(NamedTuple):
    """A tag that cannot be where it is."""

    position: int
    """In the sentence, from 0."""
    expected: str
    hint: str


def are_span_tags(found: Iterable[str]) -> bool:
    """Tell whether tags spell spans, or stand for themselves as parts of speech do.

    Args:
        found: the tags of all sentences.

    Returns:
        Whether there is one such as ``B-PER`` and, beside these, ``O`` or nothing. With ``O`` one of them is enough:
        what else there is, is then a mistake.
    """
    different = set(found)
    spelled = {tag for tag in different if tag != "O" and _TAG.fullmatch(tag)}
    return bool(spelled) and ("O" in different or spelled == different)


def detect_scheme(sentences: Iterable[Sequence[str]]) -> Scheme:
    """Tell the scheme from the tags of a whole corpus.

    Args:
        sentences: the tags of each.

    Returns:
        IOBES when there is an ``E-`` or an ``S-``; else IOB1 when more tags ``I-`` have no beginning than tags
        ``B-`` would be ``I-`` in IOB1; else BIO2.
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
    """Find the first tag of a sentence that a scheme does not allow where it is.

    Args:
        sentence: its tags.
        scheme: which.

    Returns:
        What is wrong; None when nothing is.
    """
    letters = "BIES" if scheme == "IOBES" else "BI"
    before = "O"
    for index, tag in enumerate(sentence):
        if tag != "O" and (not _TAG.fullmatch(tag) or tag[0] not in letters):
            listed = ", ".join(f"{letter}-" for letter in letters)
            return InvalidTag(index, f"O, or {listed} and a type", f"the scheme is {scheme}")
        if said := _wrong_behind(before, tag, scheme):
            return InvalidTag(index, *said)
        before = tag
    if scheme == "IOBES" and before[0] in "BI":
        last = f"E-{before[2:]}" if before[0] == "I" else f"S-{before[2:]}"
        return InvalidTag(len(sentence) - 1, f"{last} at a sentence's end", "in IOBES a span ends with E-, or is S-")
    return None


def _wrong_behind(before: str, tag: str, scheme: Scheme) -> tuple[str, str] | None:
    """Say what a tag should be behind another, and why, if it should not be what it is."""
    kind, going_on = tag[2:], before[2:]
    new = kind != going_on
    if scheme == "IOBES":
        if before[0] in "BI" and (tag[0] not in "IE" or new):
            return f"I-{going_on} or E-{going_on} behind {before}", "in IOBES a span of several tokens ends with E-"
        if before[0] in "OES" and tag[0] in "IE":
            return f"B-{kind} or S-{kind} behind {before}", "in IOBES a span begins with B-, or is S-"
    elif scheme == "BIO2" and tag[0] == "I" and new:
        return f"B-{kind} behind {before}", "in BIO2 a span begins with B-, and in IOB1 others would not"
    elif scheme == "IOB1" and tag[0] == "B" and new:
        return f"I-{kind} behind {before}", "in IOB1 a span begins with B- only right behind one of its type"
    return None


def tags_to_spans(sentence: Sequence[str], scheme: Scheme) -> tuple[Span, ...]:
    """Read the spans that tags spell.

    Args:
        sentence: the tags.
        scheme: what they are written in.

    Returns:
        The spans, from left to right.

    Raises:
        DataError: when the scheme does not allow these tags; see :func:`find_fault`.

    Example:
        >>> spans(["I-PER", "I-PER", "B-PER", "O"], "IOB1")
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
    """Spell spans.

    Args:
        found: the spans, from left to right, none over another.
        length: how many tokens the sentence has.
        scheme: what to write.

    Returns:
        A tag for each token.

    Example:
        >>> tags([Span(0, 2, "PER"), Span(2, 3, "PER")], 4, "IOBES")
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
    """Write the same spans in another scheme.

    Args:
        sentence: the tags.
        scheme: what they are written in.
        to: what to write.

    Returns:
        The tags; DataError as of :func:`spans`.
    """
    return spans_to_tags(tags_to_spans(sentence, scheme), len(sentence), to)


@dataclass(frozen=True)
class TagGrammar:
    """Rules for sequences of n tags."""

    first: tuple[bool, ...]
    """Which tags may come first, n of them."""
    after: tuple[tuple[bool, ...], ...]
    """For each tag which may follow it, n of n."""
    last: tuple[bool, ...]
    """Which tags may come last, n of them."""

    @classmethod
    def free(cls, count: int) -> TagGrammar:
        """Allow every sequence.

        Args:
            count: n.

        Returns:
            The rules.
        """
        every = (True,) * count
        return cls(every, (every,) * count, every)

    @classmethod
    def iobes(cls, tags: Sequence[str]) -> TagGrammar:
        """Allow what spells whole entities.

        Args:
            tags: their names.

        Returns:
            The rules.

        Raises:
            DataError: when a name is none of the scheme's.

        Example:
            >>> TagGrammar.iobes(["O", "B-PER", "E-PER"]).after
            ((True, True, False), (False, False, True), (True, True, False))
        """
        for tag in tags:
            prefix, dash, kind = tag.partition("-")
            if tag != "O" and not (prefix in ("B", "I", "E", "S") and dash and kind):
                raise DataError(f"{tag!r} is no tag of IOBES; expected O, or B-, I-, E- or S- and a type")
        return cls(
            first=tuple(_joins("O", tag) for tag in tags),
            after=tuple(tuple(_joins(before, tag) for tag in tags) for before in tags),
            last=tuple(_joins(tag, "O") for tag in tags),
        )


def _joins(before: str, tag: str) -> bool:
    """Whether a tag may follow another."""
    if before[0] in "BI":
        return tag[0] in "IE" and tag[1:] == before[1:]
    return tag[0] in "OSB"


def iobes_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Complete a set of IOBES tags: a type that is met in one form may be met in all.

    Args:
        tags: those that were met.

    Returns:
        O, then the four tags of each type, types in alphabetical order.
    """
    kinds = sorted({tag.partition("-")[2] for tag in tags} - {""})
    return ("O", *(f"{prefix}-{kind}" for kind in kinds for prefix in "BIES"))
