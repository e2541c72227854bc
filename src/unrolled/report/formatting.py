"""Format numbers and tokens. Tokens are untrusted text.

A control character can move the cursor of a terminal or reverse the order of a line. Each one is shown as a symbol or
by its code point; nothing is dropped.
"""

from __future__ import annotations

import math
import unicodedata

__all__ = [
    "brief",
    "clip",
    "counted",
    "fitted",
    "harmless",
    "letters",
    "magnitude",
    "minus",
    "share_of",
    "signed",
    "visible",
]

# These two join emoji and Persian letters; they are shown only where they join nothing.
_JOINERS = {"\u200c", "\u200d"}


def _picture(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"} and character not in _JOINERS:
        return f"⟨U+{code:04X}⟩"
    return character


def counted(number: int, noun: str) -> str:
    """Write a number with its noun, such as ``1 text`` and ``2 texts``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def visible(text: str) -> str:
    """Replace control, bidirectional and unpaired characters by symbols or code points.

    Blanks alone become ``␣``, and the empty text ``∅``.
    """
    if not text:
        return "∅"
    if not text.strip(" \u00a0\u3000"):
        return "␣" * len(text)
    if text.isascii() and text.isprintable():  # nearly every token: looking at each letter takes ten times as long
        return text
    if set(text) <= _JOINERS:
        return "".join(f"⟨U+{ord(c):04X}⟩" for c in text)
    return "".join(map(_picture, text))


def harmless(text: str) -> str:
    """Replace the characters that :func:`visible` replaces, except line ends, tabs and blanks: for a whole output."""
    return "".join(c if c in "\n\t" else _picture(c) for c in text)


def clip(text: str, length: int) -> str:
    """Shorten a text to at most ``length`` characters, the last of them an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + "…"


def letters(text: str) -> float:
    """Estimate how wide a text is drawn, in letters of the usual width: Chinese ones and capitals are wider."""
    return sum(map(_letter, text))


def _letter(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if character in "mwMW@%" or unicodedata.east_asian_width(character) in "WF":
        return 1.65
    return 1.25 if character.isupper() else 1.0


def fitted(text: str, width: int) -> str:
    """Shorten a text to the width of so many letters, the last of them an ellipsis."""
    if letters(text) <= width:
        return text
    end, left = 0, width - 1.0
    while (left := left - _letter(text[end])) >= 0:
        end += 1
    return text[:end] + "…"


def signed(value: float) -> str:
    """Format a number with its sign: ``"+1.250"``, ``"+421797"``, ``"-3.1e-09"``, ``"0"``.

    It has three decimals, from 100,000 on none; it is scientific where that would be too short or too long.
    """
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return f"{value:+}"
    if 1e5 <= abs(value) < 1e10:
        return f"{value:+.0f}"
    return f"{value:+.3f}" if 0.0005 <= abs(value) < 1e5 else f"{value:+.1e}"


def brief(value: float, limit: float = 1.0) -> str:
    """Format a number with its sign in at most seven characters: ``"+1.25"``, ``"-0.013"``, ``"+2e+06"``.

    The smaller the ``limit``, the largest number shown beside it, the more decimals. A number that rounds to zero is
    ``"0"``.
    """
    decimals = max(2, 1 - math.floor(math.log10(limit))) if limit > 0 else 2
    if abs(value) < 0.5 * 10.0**-decimals:
        return "0"
    if decimals > 4 or abs(value) >= 999_999.5:
        return f"{value:+.0e}"
    return f"{value:+.{decimals}f}" if abs(value) < 100 else f"{value:+.0f}"


def minus(number: str) -> str:
    """Replace hyphens by true minus signs."""
    return number.replace("-", "−")


def magnitude(value: float) -> str:
    """Format a number of 0 or more with two digits: ``"0.012"``, ``"3.1e-09"``, ``"0"``."""
    return "0" if value == 0 else f"{value:.2g}"


def share_of(share: float, whole: str) -> str:
    """Compare a part with a whole: ``"0.012 of the logit"``, ``"1.8 times the logit"``, ``"0"``."""
    if share == 0:
        return "0"
    size = magnitude(share) if math.isfinite(share) else "infinitely many"
    return f"{size} {'of' if share < 1 else 'times'} {whole}"
