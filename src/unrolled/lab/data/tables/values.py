"""What the fields of a table are: numbers, dates, texts of so many words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from statistics import fmean

__all__ = ["is_date", "is_number", "is_value", "may_have_thousands", "mean_words", "number_hint", "share"]

_MINUS = "\N{MINUS SIGN}"
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ].*)?")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")


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


def number_hint(field: str) -> str:
    """Say how a number with a comma, a unit or a typographic minus is written; empty for a field that is none."""
    bare = _without_signs(field)
    signs = "" if bare == field.strip() else "without the sign, "
    if bare.startswith(_MINUS):
        bare, signs = f"-{bare.removeprefix(_MINUS)}", f"{signs}with a hyphen, "
    plain, point = bare.replace(",", ""), bare.replace(",", ".")
    if _THOUSANDS.fullmatch(bare):
        if plain != bare and bare.count(",") == 1 and "." not in bare:
            return f"write it {signs}as {plain} if its comma separates thousands, as {point} if it is a decimal comma"
        return f"write it {signs}without commas, {plain}"
    if "," in bare and is_number(bare):
        return f"write it {signs}with a point, {point}"
    return f"write it {signs}{bare}" if signs and is_number(bare) else ""


def may_have_thousands(field: str) -> bool:
    """Tell whether a comma of a number may separate thousands: three digits follow it."""
    return "," in field and bool(_THOUSANDS.fullmatch(_without_signs(field)))


def _without_signs(field: str) -> str:
    return "".join(letter for letter in field if letter not in "%‰" and unicodedata.category(letter) != "Sc").strip()


def is_value(field: str) -> bool:
    """Tell whether a field is a number or a date."""
    return is_number(field) or is_date(field)


def share(fields: Sequence[str], test: Callable[[str], bool]) -> float:
    """Return the share of fields that pass a test; 0 of none."""
    return sum(map(test, fields)) / len(fields) if fields else 0.0


def mean_words(fields: Sequence[str]) -> float:
    """Return the mean number of words; 0 of no fields."""
    return fmean(len(field.split()) for field in fields) if fields else 0.0
