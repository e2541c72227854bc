"""Numbers and tokens as they are written: tokens are anybody's text, and must neither hide nor act.

A control character can move the cursor of a terminal or turn the order of a line round. Each is shown as a
picture or by its code point; nothing is dropped.
"""

from __future__ import annotations

import math
import unicodedata

__all__ = ["brief", "clip", "minus", "signed", "size", "visible"]

# Emoji families and Persian words are joined by these two, which are shown only where they join nothing.
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


def visible(text: str) -> str:
    """Write a text so that every character can be seen and none can act.

    Args:
        text: a token, or any other string of the user's.

    Returns:
        The text with control, bidirectional and unpaired characters replaced by pictures or code points;
        blanks alone become ``␣``, and the empty text ``∅``.
    """
    if not text:
        return "∅"
    if not text.strip(" \u00a0\u3000"):
        return "␣" * len(text)
    if set(text) <= _JOINERS:
        return "".join(f"⟨U+{ord(c):04X}⟩" for c in text)
    return "".join(map(_picture, text))


def clip(text: str, length: int) -> str:
    """Shorten a text to at most ``length`` characters, the last of them an ellipsis.

    Args:
        text: any text.
        length: 1 or more.

    Returns:
        The text, or its beginning.
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def signed(value: float) -> str:
    """Write a number with its sign: three decimals, or powers of ten where those would not show it.

    Args:
        value: any number.

    Returns:
        ``"+1.250"``, ``"-3.1e-09"``, ``"0"``.
    """
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return f"{value:+}"
    return f"{value:+.3f}" if 0.0005 <= abs(value) < 1e5 else f"{value:+.1e}"


def brief(value: float, limit: float = 1.0) -> str:
    """Write a number with its sign for a cell, where seven characters fit.

    Args:
        value: a finite number.
        limit: the largest number it stands beside; the smaller that is, the more decimals.

    Returns:
        ``"+1.25"``, ``"-0.013"``, ``"+2e+03"``, and ``"0"`` for what would round to it.
    """
    decimals = max(2, 1 - math.floor(math.log10(limit))) if limit > 0 else 2
    if abs(value) < 0.5 * 10.0**-decimals:
        return "0"
    if decimals > 4 or abs(value) >= 1e4:
        return f"{value:+.0e}"
    return f"{value:+.{decimals}f}" if abs(value) < 100 else f"{value:+.0f}"


def minus(number: str) -> str:
    """Set a number in type: with true minus signs.

    Args:
        number: as the functions of this module write it.

    Returns:
        The same with ``−`` for the hyphen that programs read.
    """
    return number.replace("-", "−")


def size(value: float) -> str:
    """Write a size, an error for example: two digits and no sign.

    Args:
        value: a number, 0 or more.

    Returns:
        ``"0.012"``, ``"3.1e-09"``, ``"0"``.
    """
    return "0" if value == 0 else f"{value:.2g}"
