"""Two entities marked in a text: ``the <e1>fire</e1> was caused by a <e2>spark</e2>``."""

from __future__ import annotations

import re

from unrolled.errors import DataError
from unrolled.lab.data.tokenise import tokenise

__all__ = ["ENTITY_MARKERS", "tokenise_marked"]

ENTITY_MARKERS = ("<e1>", "</e1>", "<e2>", "</e2>")
_ORDERS = (ENTITY_MARKERS, (*ENTITY_MARKERS[2:], *ENTITY_MARKERS[:2]))
_MARKER = re.compile("|".join(ENTITY_MARKERS))
# The tokeniser cuts markers to pieces, so it is shown one sign for each, of those that Unicode leaves to us.
_SIGNS = {marker: chr(0xE000 + index) for index, marker in enumerate(ENTITY_MARKERS)}
_MARKERS = {sign: marker for marker, sign in _SIGNS.items()}
_NO_SIGNS = str.maketrans(dict.fromkeys(_MARKERS, " "))


def tokenise_marked(text: str) -> tuple[str, ...]:
    """Cut a text with two marked entities into tokens, each marker a token of its own.

    Args:
        text: with ``<e1>…</e1>`` and ``<e2>…</e2>`` in it, in either order.

    Returns:
        The tokens.

    Raises:
        DataError: when a marker is missing, repeated, misplaced, or has no word in it; the text says what was
            expected and found, but not where.
    """
    markers = tuple(_MARKER.findall(text))
    if markers not in _ORDERS:
        raise DataError(
            f"expected <e1>…</e1> and <e2>…</e2>, once each and apart, found {' '.join(markers) or 'no marker'}"
        )
    signed = _MARKER.sub(lambda marker: f" {_SIGNS[marker[0]]} ", text.translate(_NO_SIGNS))
    tokens = tuple(_MARKERS.get(token, token) for token in tokenise(signed))
    for begin, end in zip(markers[::2], markers[1::2], strict=True):
        if tokens.index(end) == tokens.index(begin) + 1:
            raise DataError(f"expected a word between {begin} and {end}, found none")
    return tokens
