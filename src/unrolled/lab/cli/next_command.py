"""The command to try after a training, with a short example of the run's own test split."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.lab.cli.runs import has_recurrent_network
from unrolled.report.formatting import visible

if TYPE_CHECKING:
    from unrolled.lab.data.corpus import Corpus
    from unrolled.lab.training.run_folder import Run

__all__ = ["next_command", "typed_path"]

_LENGTHS = {"lm": 40, "chars": 400}
"""Tokens to generate with a language model."""
_LOOKED_AT, _FEWEST, _LONGEST = 200, 3, 100
"""Examples of the split, and the fewest tokens and most characters of one that can be typed."""


def next_command(run: Run, corpus: Corpus[Any]) -> str:
    """Write the command: an explanation, a translation, a generated text, tags; of other runs, the evaluation."""
    task, folder = run.task.name, visible(shlex.quote(typed_path(run.folder)))
    if task in _LENGTHS:
        return f"unrolled generate {folder} --length {_LENGTHS[task]}"
    if task == "translate":
        command, texts = "translate", (" ".join(example.source) for example in corpus.test)
        return _with_text(command, folder, texts)
    if task in _TEXTS and has_recurrent_network(run.model):
        return _with_text("explain", folder, map(_TEXTS[task], corpus.test))
    if task == "tag":
        return _with_text("tag", folder, map(_TEXTS[task], corpus.test))
    return f"unrolled evaluate {folder}"


def typed_path(path: Path) -> str:
    """Write a path as a person would type it in the current folder; none begins as an option does."""
    here = Path.cwd()
    typed = str(path.relative_to(here) if path.is_relative_to(here) else path)
    return f"./{typed}" if typed.startswith("-") else typed


def _with_text(command: str, folder: str, texts: Iterable[str]) -> str:
    """Add the shortest of some texts that is neither a fragment nor unfit for one line; else evaluate."""
    fit = [
        text
        for text in islice(texts, _LOOKED_AT)
        if len(text.split()) >= _FEWEST and len(text) <= _LONGEST and visible(text) == text and text.isprintable()
    ]
    if not fit:
        return f"unrolled evaluate {folder}"
    text = min(fit, key=len)
    return f"unrolled {command} {folder} {shlex.quote(text)}"


def _written(example: Any) -> str:
    """Return a text as it was written; without that, its tokens."""
    return example.text or " ".join(example.tokens)


def _question(example: Any) -> str:
    answer = next((each for each in example.candidates if each.right), example.candidates[0])
    return f"{' '.join(example.tokens)} ||| {' '.join(answer.tokens)}"


_TEXTS = {
    "classify": _written,
    "regress": _written,
    "relate": lambda example: example.text,
    "tag": lambda example: " ".join(example.tokens),
    "rank": _question,
}
"""How an example of a task is typed."""
