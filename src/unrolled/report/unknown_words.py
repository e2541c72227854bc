"""Words that a model does not know: each is shown as the user wrote it, with a mark that a note explains."""

from __future__ import annotations

from collections.abc import Collection, Sequence

__all__ = ["mark_unknown", "note_unknown"]

_MARK = "†"
"""Follows a word that the vocabulary lacks."""


def mark_unknown(tokens: Sequence[str], unknown: Collection[str]) -> tuple[str, ...]:
    """Add the mark to the tokens that the vocabulary lacks."""
    return tuple(token + _MARK if token in unknown else token for token in tokens)


def note_unknown(unknown: Sequence[str], unknown_word: str | None) -> tuple[str, ...]:
    """Write the note that explains the mark and lists the unknown tokens; no note if there are none."""
    word = "the one word for all unknown words" if unknown_word is None else unknown_word
    return (f"{_MARK} not in the model's vocabulary, read as {word}: {', '.join(unknown)}",) if unknown else ()
