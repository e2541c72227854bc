"""Names that people give to columns."""

from __future__ import annotations

__all__ = ["LABELS", "TEXTS", "USUAL_LABELS", "USUAL_TEXTS", "is_usual_name"]

TEXTS = frozenset({"text", "sentence"})
LABELS = frozenset({"label", "class", "rating", "relation"})
"""The names that this library documents."""
USUAL_TEXTS = frozenset(
    "body comment comments content contents description document headline message post question review reviews "
    "reviewtext review_text review_body sms title tweet utterance verbatim feedback".split()
)
USUAL_LABELS = frozenset(
    "airline_sentiment category emotion feeling grade intent label_text labels polarity score sentiment spam star "
    "stars tag target topic toxic type y".split()
)
_OTHERS = frozenset("author country date day id idx index language name source time timestamp uid url user".split())


def is_usual_name(field: str) -> bool:
    """Tell whether people usually name a column so."""
    return field.strip().lower() in TEXTS | LABELS | USUAL_TEXTS | USUAL_LABELS | _OTHERS
