"""JSON lines: an object a line, ``{"text": "…", "label": "…"}``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

from unrolled.lab.data.json_lines import iter_objects
from unrolled.lab.data.labelled_text import LabelledFormat
from unrolled.lab.data.text_files import malformed

__all__ = ["JsonLines"]


class JsonLines(LabelledFormat):
    """One object a line, with a text and a label; what else it holds is left aside."""

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson")
    description = '{"text": "…", "label": "…"}, one object a line; a label may be a number'

    def fields(self, path: Path) -> Iterator[tuple[int, str, str]]:
        """Read the texts and labels as they are written.

        Args:
            path: one file.

        Yields:
            The line, the text, the label.

        Raises:
            DataError: when a line is no object, has no text or no label, or one that cannot be written in UTF-8.
        """
        for number, record in iter_objects(path):
            for key in ("text", "label"):
                if key not in record:
                    found = f"only {', '.join(map(json.dumps, record))}" if record else "none"
                    raise malformed(path, number, f'the key "{key}"', found, "an example has a text and a label")
            text, label = record["text"], record["label"]
            if not isinstance(text, str) or "\0" in text:
                raise malformed(path, number, 'a string for "text"', json.dumps(text), "in quotes, and without NUL")
            if not isinstance(label, str | int | float) or isinstance(label, bool):
                hint = "a name in quotes, or a number"
                raise malformed(path, number, 'a string or a number for "label"', json.dumps(label), hint)
            if isinstance(label, float) and not math.isfinite(label):
                hint = "leave the example out, or put a name in quotes"
                raise malformed(path, number, "a finite number", json.dumps(label), hint)
            label = str(label)
            for value in (text, label):
                if half := _half_a_character(value):
                    hint = "a character beyond U+FFFF is written as two of them, or as itself"
                    raise malformed(path, number, "whole characters", json.dumps(half), hint)
            yield number, text, label


def _half_a_character(text: str) -> str:
    """Find what JSON can write and UTF-8 cannot: one of a pair of surrogates; nothing where there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return text[error.start]
    return ""
