"""Say which words of a text the vocabulary of a model lacks."""

from __future__ import annotations

import typer

from unrolled.report.formatting import harmless

__all__ = ["say_unknown"]


def say_unknown(what: str, where: str = "") -> None:
    """Say on stderr that words, or a number of them, are read as unknown; ``where`` precedes that."""
    from unrolled.lab.data.vocabulary import UNKNOWN_WORD

    typer.echo(f"{where}not in the vocabulary, read as {UNKNOWN_WORD}: {harmless(what)}", err=True)
