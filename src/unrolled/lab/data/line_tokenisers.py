"""How the lines of a file are cut into tokens: at their spaces, where somebody has cut them already."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from unrolled.lab.data.tokenise import tokenise

__all__ = ["CUT_ALREADY", "at_spaces", "cutter"]

CUT_ALREADY = frozenset({"tok", "tokens", "bpe"})
"""What the name of a file says whose tokens are separated by spaces: ``train.tok.de``, ``wiki.test.tokens``."""


def at_spaces(line: str) -> list[str]:
    """Cut a line at its spaces alone: other white space (a no-break space) may be part of a token.

    Args:
        line: without its end.

    Returns:
        The tokens.
    """
    return [token for token in line.split(" ") if token]


def cutter(path: Path) -> Callable[[str], list[str]]:
    """Choose how to cut the lines of a file.

    Args:
        path: its name tells.

    Returns:
        :func:`at_spaces` when a part of the name is one of :data:`CUT_ALREADY`, else
        :func:`~unrolled.lab.data.tokenise.tokenise`.

    Example:
        >>> cutter(Path("train.tok.de"))("that 's <unk>"), cutter(Path("train.de"))("that's it.")
        (['that', "'s", '<unk>'], ['that', "'s", 'it', '.'])
    """
    return tokenise if CUT_ALREADY.isdisjoint(path.name.split(".")) else at_spaces
