"""Texts that are not ours on standard output: of users' files, or made of words of users' files."""

from __future__ import annotations

import sys

from unrolled.report.formatting import harmless

__all__ = ["write_text"]


def write_text(text: str) -> None:
    """Write a text; a terminal gets a symbol for each control character, a file or a pipe the text as it is."""
    sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()
