"""Lists of texts as people pass them in Python: what is no string is refused by its place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from unrolled.errors import UsageError, kind_of

__all__ = ["check_list", "check_strings", "name_places", "shown_kind"]

_NAMED = 20  # texts in one message


def check_list(given: object, name: str) -> None:
    """Refuse anything but a list with one entry for each text. Tables and maps would give names, and sets no order.

    Args:
        given: A list, an array, a series, or anything else with a length and an order.
        name: What it holds: texts, labels.

    Raises:
        UsageError: It says what was given.
    """
    if isinstance(given, str):
        raise UsageError(f"{name} is the string {given[:40]!r}; expected a list of {name}: [{given[:40]!r}]")
    shape = getattr(given, "shape", (0,))
    if len(shape) != 1:
        raise UsageError(f"{name} is {kind_of(given)} of shape {shape}; expected a list of {name}, such as one column")
    iterable, sized = isinstance(given, Iterable), hasattr(given, "__len__")
    if isinstance(given, Mapping | set | frozenset) or not (iterable and sized):
        way = ": list() makes one of it" if iterable and not sized else ""
        raise UsageError(f"{name} is {kind_of(given)}; expected a list of {name}, in the order of the texts{way}")


def check_strings(texts: Sequence[object]) -> None:
    """Refuse a list of texts with a missing value or anything else that is no string.

    Raises:
        UsageError: It names the places.
    """
    other = {place: text for place, text in enumerate(texts) if not isinstance(text, str)}
    if other:
        kinds = ", ".join(dict.fromkeys(map(shown_kind, other.values())))
        raise UsageError(
            f"{name_places(other)} {kinds}; expected strings: leave out what is missing (in pandas, dropna)"
        )


def name_places(places: Collection[int]) -> str:
    """Name texts by their indices: ``texts[1], texts[4] are``."""
    names = ", ".join(f"texts[{place}]" for place in islice(places, _NAMED))
    more = f" and {len(places) - _NAMED:,} more" if len(places) > _NAMED else ""
    return f"{names}{more} {'is' if len(places) == 1 else 'are'}"


def shown_kind(value: object) -> str:
    """Say what stands where a string was expected: None, nan, or its type."""
    return str(value) if value is None or isinstance(value, float) else f"of type {type(value).__name__}"
