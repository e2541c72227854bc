"""Which tag may follow which.

In the scheme IOBES a token is outside of any entity (``O``), an entity by itself (``S-type``), or the beginning,
inside or end of one (``B-type``, ``I-type``, ``E-type``): after B and I of a type comes I or E of that type, after
all others, and at the beginning, O, S or B.

Source:
    Implicit n-grams, appendix E.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unrolled.errors import DataError

__all__ = ["TagGrammar", "iobes_tags"]


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
