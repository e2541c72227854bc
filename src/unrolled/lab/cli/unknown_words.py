"""Say which words of a text the vocabulary of a model lacks."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from unrolled.report.formatting import visible

__all__ = ["say_unknown"]


def say_unknown(words: Iterable[str], where: str = "") -> None:
    """Say on stderr which words, or how many, are read as unknown; ``where`` precedes that."""
    from unrolled.lab.data.vocabulary import UNKNOWN_WORD

    typer.echo(f"{where}not in the vocabulary, read as {UNKNOWN_WORD}: {' '.join(map(visible, words))}", err=True)
