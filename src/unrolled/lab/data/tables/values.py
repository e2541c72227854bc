"""What a field of a table is: a number, a date."""

from __future__ import annotations

import re

__all__ = ["is_date", "is_number"]

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
