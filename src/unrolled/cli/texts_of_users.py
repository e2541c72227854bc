"""Texts that are not ours: of the command line, and on standard output, where they are made of users' files."""

from __future__ import annotations

import sys

from unrolled.errors import UsageError
from unrolled.report.formatting import harmless

__all__ = ["check_encoded", "write_text"]


def check_encoded(text: str) -> None:
    """Refuse a text of the command line in another encoding than Python's: its letters would be unknown words."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        byte = text[error.start].encode(errors="surrogateescape")[0]
        raise UsageError(
            f"the text has the byte 0x{byte:02x}, which is not {sys.getfilesystemencoding().upper()}; "
            "give a text in UTF-8, or a file of it"
        ) from None


def write_text(text: str) -> None:
    """Write a text; a terminal gets a symbol for each control character, a file or a pipe the text as it is."""
    sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()
