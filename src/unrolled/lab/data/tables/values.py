"""What the fields of a table are: numbers, dates, texts of so many words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from statistics import fmean

__all__ = ["is_date", "is_number", "is_value", "mean_words", "share"]

_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ].*)?")


def is_date(field: str) -> bool:
    """Tell whether a field is a date, with or without a time."""
    return _DATE.fullmatch(field.strip()) is not None


def is_number(field: str) -> bool:
    """Tell whether a field is a number, with a decimal point or a decimal comma."""
    comma = field.count(",") == 1 and "." not in field
    try:
        float(field.replace(",", ".") if comma else field)
    except ValueError:
        return False
    return True


def is_value(field: str) -> bool:
    """Tell whether a field is a number or a date."""
    return is_number(field) or is_date(field)


def share(fields: Sequence[str], test: Callable[[str], bool]) -> float:
    """Return the share of fields that pass a test; 0 of none."""
    return sum(map(test, fields)) / len(fields) if fields else 0.0


def mean_words(fields: Sequence[str]) -> float:
    """Return the mean number of words; 0 of no fields."""
    return fmean(len(field.split()) for field in fields) if fields else 0.0
