"""Properties of every character of a text: position in its line, what encloses it, and depth.

A property of a character is what holds after it has been read, like the state of a network: the mark that opens a
quotation is inside it, the mark that closes it is not.

Source:
    Karpathy, Johnson and Fei-Fei (2015), arXiv:1506.02078, figure 2, and CS 577, lecture 5, for the properties.
"""

from __future__ import annotations

import ast
import io
import re
import string
import token
import tokenize
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

import torch
from torch import Tensor

from unrolled.errors import DataError

__all__ = ["PROSE", "PYTHON", "prose_properties", "python_properties"]

PROSE = ("position in line", "inside quotes")
"""The properties of :func:`prose_properties`."""
PYTHON = (
    "position in line",
    "inside a string or comment",
    "inside a string",
    "inside a comment",
    "inside an if",
    "bracket depth",
    "block depth",
)
"""The properties of :func:`python_properties`."""

Change = tuple[str, int, int]
"""A property, the index of the character at which it changes, and the change."""

_PARAGRAPH = re.compile(r".+?(?:\n\n|\Z)", re.DOTALL)
# since Python 3.12, a string with fields is several tokens, including those of the fields
_OPENS = {getattr(token, name) for name in ("FSTRING_START", "TSTRING_START") if hasattr(token, name)}
_CLOSES = {getattr(token, name) for name in ("FSTRING_END", "TSTRING_END") if hasattr(token, name)}


def prose_properties(text: str) -> dict[str, Tensor]:
    """Compute the properties of prose: a number for each character, by the names in :data:`PROSE`.

    The same mark opens and closes quotations. A paragraph, which an empty line ends, begins outside quotations: speech
    that continues is opened again there, though it was never closed. The text must begin with a paragraph.

    Example:
        >>> prose_properties('"Oh," he said.')["inside quotes"].int().tolist()
        [1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    """
    changes: list[Change] = []
    for paragraph in _PARAGRAPH.finditer(text):
        marks = [mark.start() + paragraph.start() for mark in re.finditer('"', paragraph[0])]
        if len(marks) % 2:
            marks.append(paragraph.end())
        changes += [("inside quotes", mark, -1 if number % 2 else 1) for number, mark in enumerate(marks)]
    return _values(text, changes, PROSE)


def python_properties(source: str) -> dict[str, Tensor]:
    """Compute the properties of Python source: a number for each character, by the names in :data:`PYTHON`.

    "Inside an if" is the condition of a statement, from ``if`` or ``elif`` to its colon. Brackets count only outside
    strings and comments; the prefix of a string is outside it. The depth of a block changes where its first statement
    begins, after the spaces. Files may be concatenated.

    Example:
        >>> python_properties("if x: f('')")["inside an if"].int().tolist()
        [0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    """
    lines = source.split("\n")
    begins = list(accumulate((len(line) + 1 for line in lines), initial=0))
    try:
        parsed = ast.parse(source)
        tokens = [
            (each.type, each.string, begins[each.start[0] - 1] + each.start[1], begins[each.end[0] - 1] + each.end[1])
            for each in tokenize.generate_tokens(io.StringIO(source).readline)
        ]
    except (SyntaxError, tokenize.TokenError) as error:
        raise DataError(f"not Python source: {error}") from None

    def place(row: int, byte: int) -> int:
        return begins[row - 1] + len(lines[row - 1].encode()[:byte].decode())

    changes = list(_token_changes(tokens))
    colons = [begin for kind, text, begin, _ in tokens if kind == token.OP and text == ":"]
    for node in ast.walk(parsed):
        if isinstance(node, ast.If):
            test = node.test
            assert test.end_lineno is not None
            assert test.end_col_offset is not None
            begin, end = place(node.lineno, node.col_offset), place(test.end_lineno, test.end_col_offset)
            word = "if" if source.startswith("if", begin) else "elif"
            changes.append(("inside an if", begin + len(word) - 1, 1))
            changes.append(("inside an if", colons[bisect_left(colons, end)], -1))
    return _values(source, changes, PYTHON)


def _token_changes(tokens: Sequence[tuple[int, str, int, int]]) -> Iterator[Change]:
    """Yield the changes by tokens, each given as kind, text, beginning and end."""
    quotes: list[int] = []  # open strings of several tokens, possibly nested in fields
    for kind, text, begin, end in tokens:
        if kind in _OPENS:
            quotes.append(_quote(text, begin))
        elif kind in _CLOSES:
            quote = quotes.pop()
            if not quotes:
                yield from _inside("a string", quote, end - 1)
        elif quotes:
            continue
        elif kind == token.STRING:
            yield from _inside("a string", _quote(text, begin), end - 1)
        elif kind == token.COMMENT:
            yield from _inside("a comment", begin, end)
        elif kind == token.INDENT:
            yield "block depth", end, 1
        elif kind == token.DEDENT:
            yield "block depth", begin, -1
        elif kind == token.OP and text in "([{":
            yield "bracket depth", begin, 1
        elif kind == token.OP and text in ")]}":
            yield "bracket depth", begin, -1


def _inside(what: str, begin: int, end: int) -> Iterator[Change]:
    """Yield the changes by a string or a comment."""
    for name in (f"inside {what}", "inside a string or comment"):
        yield from ((name, begin, 1), (name, end, -1))


def _quote(text: str, begin: int) -> int:
    """Find the first quotation mark of a string, after its prefix."""
    return begin + len(text) - len(text.lstrip(string.ascii_letters))


def _values(text: str, changes: Sequence[Change], names: Sequence[str]) -> dict[str, Tensor]:
    """Sum the changes, and count the characters of each line."""
    steps = {name: torch.zeros(len(text) + 1) for name in names[1:]}
    for name, where, by in changes:
        steps[name][min(where, len(text))] += by  # what ends with the text ends after it
    columns = [column for line in text.split("\n") for column in (*range(1, len(line) + 1), 0)]
    return {
        names[0]: torch.tensor(columns[: len(text)], dtype=torch.float32),
        **{name: each.cumsum(0)[: len(text)] for name, each in steps.items()},
    }
