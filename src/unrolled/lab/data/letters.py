"""One way to write what looks the same: ``é`` may be one character, or ``e`` and an accent, as macOS writes it."""

from __future__ import annotations

import unicodedata

__all__ = ["clean_label", "composed"]

_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"))  # soft hyphen, spaces of no width, byte-order mark


def composed(text: str) -> str:
    """Write each letter with its accents as one character, where Unicode has one."""
    return unicodedata.normalize("NFC", text)


def clean_label(label: str) -> str:
    """Return a label without what nobody sees, so that labels that look the same are the same."""
    return composed(label.translate(_INVISIBLE)).strip()
