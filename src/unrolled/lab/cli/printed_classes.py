"""Print how well each class is predicted: scores, the confusion matrix and the worst errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import typer
from rich.cells import cell_len
from rich.console import Console

from unrolled.cli.wrapped_line import print_wrapped
from unrolled.lab.cli.labelled_predictions import LabelledPredictions
from unrolled.lab.metrics.confusion import Confusion
from unrolled.report.formatting import clip, visible

__all__ = ["print_classes"]

_SHOWN = 100
"""Characters of a text."""
_NAME = 24
"""Characters of the name of a class."""


def print_classes(found: LabelledPredictions, errors: int, most: int) -> None:
    """Print the scores of the classes, the confusion matrix and the worst errors."""
    confusion, names = found.confusion, _short_names(found.classes)
    if len(names) <= most:
        width = max(cell_len("class"), *map(cell_len, names))
        typer.echo(f"\n{_padded('class', width)}  precision  recall      F1  examples")
        for name, score in zip(names, confusion.scores, strict=True):
            numbers = f"{score.precision:9.1%}  {score.recall:6.1%}  {score.f1:6.1%}  {score.examples:8,}"
            typer.echo(f"{_padded(name, width)}  {numbers}")
        typer.echo(f"{'macro':{width}}  {'':9}  {'':6}  {confusion.macro_f1:6.1%}")
        _print_matrix(confusion, names, width)
    else:
        typer.echo(f"\nmacro F1 {confusion.macro_f1:.1%} over {len(names):,} classes")
    if confusion.only_answer is not None:
        typer.echo(
            f"\nevery text is predicted to be {visible(confusion.only_answer)}, so accuracy is the share of that class"
        )
    worst = found.worst
    if worst and errors:
        typer.echo("\nthe error" if len(worst) == 1 else f"\nthe worst of {len(worst):,} errors")
    for place in worst[:errors]:
        wrong = found.rows[place]
        right = f"{visible(wrong.label or '')} ({wrong.probabilities[found.labels[place]]:.0%})"
        text = clip(visible(" ".join(wrong.text.split())), _SHOWN)
        print_wrapped(f"  {visible(wrong.predicted)} ({max(wrong.probabilities):.0%}), right: {right}: {text}")


def _print_matrix(confusion: Confusion, names: Sequence[str], width: int) -> None:
    """Print the confusion matrix; if its columns have no room for names on the terminal, they have numbers."""
    counts = [[f"{count:,}" for count in row] for row in confusion.counts]
    heads = list(names)
    console = Console()
    if console.is_terminal and width + sum(2 + cell_len(name) for name in names) > console.width:
        heads = [str(number) for number, _ in enumerate(names, start=1)]
        names = [f"{number:>{len(heads[-1])}} {name}" for number, name in zip(heads, names, strict=True)]
        width += len(heads[-1]) + 1
    columns = [max(map(cell_len, column)) for column in zip(heads, *counts, strict=True)]
    typer.echo("\nright class, by row; predicted, by column")
    for name, row in zip(("", *names), (heads, *counts), strict=True):
        cells = (" " * (size - cell_len(cell)) + cell for cell, size in zip(row, columns, strict=True))
        typer.echo(f"{_padded(name, width)}  {'  '.join(cells)}")


def _padded(text: str, width: int) -> str:
    """Fill up with blanks to so many places of a terminal; letters of some scripts take two."""
    return text + " " * (width - cell_len(text))


def _short_names(classes: Sequence[str]) -> list[str]:
    """Shorten names at their ends; those that would be the same in their middles, or not at all."""
    whole = [visible(name) for name in classes]
    ends = [clip(name, _NAME) for name in whole]
    half = _NAME // 2
    middles = [name if len(name) <= _NAME else f"{name[: half - 1]}…{name[-half:]}" for name in whole]
    shown = [middle if ends.count(end) > 1 else end for end, middle in zip(ends, middles, strict=True)]
    count = Counter(shown)
    return [name if count[short] > 1 else short for name, short in zip(whole, shown, strict=True)]
