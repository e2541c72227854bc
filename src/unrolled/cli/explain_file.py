"""``unrolled explain --file``: every text of a file, a line each in the terminal and together on one page."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unrolled.atomic_write import atomic_write
from unrolled.cli.wrapped_line import print_wrapped
from unrolled.errors import DataError, UsageError
from unrolled.report.formatting import clip, counted, signed, visible

if TYPE_CHECKING:
    from unrolled.cli.prepared_input import ChosenTarget, PreparedInput
    from unrolled.explanation.explanation import Explanation
    from unrolled.report.corpus_phrases import CorpusPhrases

__all__ = ["FileOptions", "NumberedText", "explain_texts", "write_ngrams"]

_SHOWN = 60
_PHRASE = 30
"""Characters of a text and of a phrase in a line of the terminal."""
_BYTES, _LARGE = 270, 50
"""Bytes of an n-gram in a JSON file, most of which are long, and megabytes of a file that is announced."""


@dataclass(frozen=True)
class NumberedText:
    """A text, and where it begins."""

    file: Path
    line: int
    text: str


@dataclass(frozen=True)
class FileOptions:
    """What to explain of every text, and what to write."""

    target: str | None
    against: str | None
    expansion: str
    html: Path | None
    json_file: Path | None
    phrases: Path | None
    most: int
    """Largest number of texts on the page and in the JSON file."""
    new: bool
    """Whether a file that is there by now is an error."""
    several: bool = False
    """Whether the texts are of several files, which are then named."""
    max_order: int | None = None
    """Length of the longest n-grams; None for all."""


def explain_texts(
    texts: Iterable[NumberedText], open_text: Callable[[str], PreparedInput], options: FileOptions, title: str
) -> None:
    """Print a line for each text, broken where the terminal is narrower, and write the files that were asked for.

    Raises:
        UsageError: If a text cannot be explained; the message names its line.
        DataError: If there is no text with a word.
    """
    from unrolled.explanation.phrase_totals import LEAST, LONGEST, PhraseTotals

    kept: list[Explanation] = []
    totals = PhraseTotals(LONGEST)
    count = empty = 0
    for each in texts:
        if not each.text.strip():
            empty += 1
            continue
        try:
            chosen = open_text(each.text).choose_target(options.target, options.against)
            if options.phrases is not None and options.target is None and len(chosen.logits) > 1:
                raise UsageError(  # before another text has another predicted class
                    f"--phrases compares the texts by one output, and the model has {len(chosen.logits):,}; give "
                    "--target"
                )
            found = chosen.explain(options.expansion, options.max_order)
            if options.phrases is not None:
                totals.add(found)
        except UsageError as error:
            raise UsageError(f"{each.file}, line {each.line}: {error}") from error
        count += 1
        print_wrapped((f"{visible(str(each.file))} " if options.several else "") + _line(each, chosen, found))
        if (options.html or options.json_file) and len(kept) < options.most:
            kept.append(found)
    if not count:
        raise DataError(f"{title}: expected a text with a word, found none")
    typer.echo(
        counted(count, "text")
        + (f"; {empty:,} without a word {'is' if empty == 1 else 'are'} left out" if empty else "")
    )
    phrases = None if options.phrases is None else totals.phrases(LEAST)
    _write(kept, count, options, title, phrases)
    if options.phrases is not None and phrases is not None:
        _write_phrases(options.phrases, phrases, options.new)


def _write(
    kept: list[Explanation], count: int, options: FileOptions, title: str, phrases: CorpusPhrases | None
) -> None:
    more = f", the first {len(kept):,} of {count:,} texts" if len(kept) < count else ""
    if options.html is not None:
        from unrolled.report.page import render_pages

        page = render_pages([[each] for each in kept], f"Explanations of {title}", phrases)
        atomic_write(options.html, page.encode(), new=options.new)
        typer.echo(f"page: {visible(str(options.html))}{more}")
    if options.json_file is not None:
        write_ngrams(options.json_file, kept, options.new, more)


def write_ngrams(path: Path, explanations: Sequence[Explanation], new: bool, more: str = "") -> None:
    """Write all n-grams as JSON, and say so; ``more`` says of which texts they are."""
    from unrolled.report.json_records import to_json

    _announce_size(path, explanations)
    atomic_write(path, to_json(explanations).encode(), new=new)
    typer.echo(f"all n-grams: {visible(str(path))}{more}")


def _announce_size(path: Path, explanations: Sequence[Explanation]) -> None:
    """Say before a large file of n-grams is made how large it will be."""
    count = sum(
        len(each.directions) * (2 * len(each) - each.longest + 1) * each.longest // 2  # by length: T, T - 1, …
        for each in explanations
    )
    size = count * _BYTES / 1e6
    if size > _LARGE:
        typer.echo(
            f"{visible(str(path))} will hold {count:,} n-grams, about {size:,.0f} MB; --max-order K leaves out "
            "those of more than K tokens",
            err=True,
        )


def _write_phrases(path: Path, phrases: CorpusPhrases, new: bool) -> None:
    """Print both ends of the table, and write all of it as comma-separated values."""
    typer.echo(f"\n{phrases}\n")
    file = io.StringIO()
    writer = csv.DictWriter(file, phrases.columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(phrases.to_records())
    atomic_write(path, file.getvalue().encode(errors="backslashreplace"), new=new)
    typer.echo(f"phrases: {visible(str(path))}: {counted(len(phrases), 'phrase')}")


def _line(each: NumberedText, chosen: ChosenTarget, found: Explanation) -> str:
    """Say in one line what is explained, its value, its largest phrases, and the text."""
    from unrolled.report.spans import largest_phrases

    phrases = [f"{clip(phrase.text, _PHRASE)} {signed(phrase.contribution)}" for phrase in largest_phrases(found, 2)]
    text = clip(visible(" ".join(each.text.split())), _SHOWN)
    value = f"{visible(chosen.name)}, {found.unit} {signed(found.ledger.logit)}"
    return f"line {each.line}  {value}  ({'; '.join(phrases)})  {text}"
