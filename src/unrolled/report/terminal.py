"""Show an attribution in a terminal. It is readable without colour, since every number has its sign.

Tokens are set as text, not as rich's markup, and their control characters are replaced: a token can neither change
colours nor move the cursor.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.style import Style
from rich.table import Table
from rich.text import Text

from unrolled.decomposition.arguments import checked_count
from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.report.colour import colour, shared_limit, text_colour
from unrolled.report.feature_rows import steps_are_named
from unrolled.report.formatting import brief, clip, share_of, signed, visible
from unrolled.report.page_view import cancellation_words, ledger_parts, sum_of_ngrams, unit_before
from unrolled.report.series_terminal import Series
from unrolled.report.spans import Phrase, largest_phrases, rows_by_order, values_of

__all__ = [
    "FAINT",
    "Sentence",
    "details",
    "heading",
    "named",
    "near_copies",
    "print_to_text",
    "render",
    "spaced",
    "sum_table",
    "to_text",
]

_TOP = 8
"""Number of n-grams to list."""
_CELL = 8
"""Columns of a cell of the triangle."""
_NUMBER, _GAP = 12, 2
"""Columns of a number in the list of n-grams, as wide as its heading, and between two columns."""
_READABLE = 14
"""Columns that the words of an n-gram need at least beside its numbers."""
FAINT = Style(dim=True)
"""The style of what is said beside the numbers."""


def _tint(value: float, limit: float) -> Style:
    background = colour(value, limit)
    return Style(color=text_colour(background), bgcolor=background)


def _fit(text: str, width: int) -> str:
    """Cut or pad a text to a number of terminal cells; wide letters and emoji take two."""
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    before = (width - cell_len(text)) // 2
    return set_cell_size(" " * before + text, width)


def heading(attribution: Attribution) -> Text:
    """Write the target, its value and the expansion."""
    return Text.assemble(
        (visible(attribution.target), "bold"),
        f"  {unit_before(attribution)}{signed(attribution.ledger.logit)}  ",
        (f"by {visible(attribution.expansion)}", FAINT),
    )


@dataclass(frozen=True)
class Sentence:
    """Tokens, each above its number."""

    tokens: Sequence[str]
    totals: Sequence[float]
    limit: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names, numbers = Text(), Text(style=FAINT)
        for token, total in zip(self.tokens, self.totals, strict=True):
            name, number = visible(token), brief(total, self.limit)
            width = min(max(cell_len(name), len(number)) + 2, options.max_width - 1)
            if names.cell_len + width > options.max_width:
                yield from (names, numbers)
                names, numbers = Text(), Text(style=FAINT)
            names.append(_fit(name, width), _tint(total, self.limit)).append(" ")
            numbers.append(_fit(number, width)).append(" ")
        yield from (names, numbers)


@dataclass(frozen=True)
class _Pyramid:
    """The triangle of phrase scores, if the terminal is wide enough."""

    attribution: Attribution
    d: int
    limit: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        attribution, count = self.attribution, len(self.attribution)
        direction = attribution.directions[self.d]
        name = "scores of the phrases" + (f", {direction}" if len(attribution.directions) > 1 else "")
        if count * _CELL > options.max_width:
            yield Text(f"{name}: omitted, the triangle needs {count * _CELL} columns", style=FAINT)
            return
        yield Text(name, style=FAINT)
        scores = values_of(attribution, "phrase")[self.d]
        for k, row in reversed(list(enumerate(rows_by_order(scores, direction, attribution.longest)))):
            line = Text(" " * (k * _CELL // 2))
            for value in row:
                line.append(_fit(brief(value, self.limit), _CELL - 1), _tint(value, self.limit)).append(" ")
            yield line
        yield Text("".join(_fit(visible(token), _CELL - 1) + " " for token in attribution.tokens))


def sum_table(entries: Sequence[tuple[str, float]], total: tuple[str, float]) -> Table:
    """Write a sum as a table, one line for each summand."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    for place, (name, value) in enumerate(entries):
        table.add_row(Text(f"{'+' if place else ' '} {visible(name)}"), Text(signed(value)))
    table.add_row(Text(f"= {total[0]}", "bold"), Text(signed(total[1]), "bold"))
    return table


@dataclass(frozen=True)
class _Top:
    """The n-grams with the largest contributions; in a narrow terminal without scores, so that words can be read."""

    attribution: Attribution
    limit: float
    count: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        phrases = largest_phrases(self.attribution, self.count)
        spans = [f"[{phrase.start}, {phrase.stop})" for phrase in phrases]
        places = "tokens" if self.attribution.features is None else "steps"
        span = max(map(len, [places, *spans]))
        table = Table(box=None, padding=(0, _GAP, 0, 0), header_style=FAINT, pad_edge=False)
        table.add_column("contribution", justify="right", no_wrap=True, min_width=_NUMBER)
        left = options.max_width - 2 * _NUMBER - span - 3 * _GAP
        scored = left >= _READABLE
        if scored:
            table.add_column("phrase score", justify="right", no_wrap=True, min_width=_NUMBER)
        table.add_column(places, no_wrap=True, min_width=span)
        left = max(6, left if scored else left + _NUMBER + _GAP)
        table.add_column("n-gram", overflow="ellipsis", no_wrap=True, max_width=left)
        for phrase, place in zip(phrases, spans, strict=True):
            near = near_copies(phrase)
            table.add_row(
                Text(signed(phrase.contribution), _tint(phrase.contribution, self.limit)),
                *([Text(signed(phrase.score))] if scored else []),
                Text(place, FAINT),
                Text.assemble(clip(named(self.attribution, phrase), max(6, left - len(near))), (near, FAINT)),
            )
        yield table


def named(attribution: Attribution, phrase: Phrase) -> str:
    """Write a phrase; a long one of steps by its ends."""
    if attribution.features is not None and phrase.stop - phrase.start > 3:
        return f"{visible(attribution.tokens[phrase.start])} … {visible(attribution.tokens[phrase.stop - 1])}"
    return clip(phrase.text, 200)


def near_copies(phrase: Phrase) -> str:
    """Say how many near-copies of a phrase are in its row."""
    return f" and {phrase.copies} near-cop{'ies' if phrase.copies > 1 else 'y'}" if phrase.copies else ""


def _remainder_line(attribution: Attribution) -> str:
    """Say how large the remainder is, and whether the expansion is exact."""
    size = f"remainder {share_of(attribution.relative_remainder, f'the {attribution.unit}')}"
    return f"{size}; {visible(attribution.expansion)} is {sum_of_ngrams(attribution)}"


def details(attribution: Attribution) -> Text:
    """Say how large the remainder is, how far contributions cancel, what was left out, and what else is to be known."""
    lines = [_remainder_line(attribution)]
    if cancels := cancellation_words(attribution.cancellation):
        lines.append(cancels)
    if not attribution.deterministic:
        lines.append("the model draws random numbers: this explains one draw")
    if attribution.max_order is not None:
        lines.append(f"n-grams of more than {attribution.max_order} tokens contribute {signed(attribution.longer)}")
    lines.extend(visible(note) for note in attribution.notes)
    return Text("\n".join(lines), style=FAINT)


def render(attribution: Attribution, top: int = _TOP) -> RenderableType:
    """Return what ``rich.print`` or a ``Console`` prints, with the triangle where the width allows it.

    ``top`` is the number of n-grams to list.
    """
    ends = shared_limit([attribution])
    totals = attribution.token_scores.tolist()
    sentence = Sentence(attribution.tokens, totals, shared_limit([attribution], "token"))
    blocks: list[RenderableType] = [heading(attribution)]
    if attribution.features is not None:
        blocks.append(Series(attribution))
    if attribution.features is None or steps_are_named(attribution):
        steps = "step" if attribution.features is not None else "token"
        what = f"contribution of each {steps}: the sum of all n-grams that enter there"
        blocks.append(Group(Text(what, FAINT), sentence))
        blocks += [_Pyramid(attribution, d, ends) for d in range(len(attribution.directions))]
    entries = ledger_parts(attribution.ledger, attribution.name)
    blocks.append(sum_table(entries, (attribution.unit, attribution.ledger.logit)))
    blocks.append(_Top(attribution, shared_limit([attribution], "contribution"), top))
    blocks.append(details(attribution))
    return spaced(blocks)


def spaced(blocks: Sequence[RenderableType]) -> Group:
    """Put an empty line between blocks."""
    return Group(*[part for block in blocks for part in (block, Text())][:-1])


def to_text(attribution: Attribution, width: int = 100, colour: bool = False, top: int = _TOP) -> str:
    """Return an attribution as text of at most ``width`` columns, with ANSI colours if ``colour``."""
    return print_to_text(render(attribution, top), width, colour)


def print_to_text(content: RenderableType, width: int, colour: bool) -> str:
    """Print to a text of at most ``width`` columns, with ANSI colours if ``colour``.

    Raises:
        UsageError: If the width is no whole number of columns.
    """
    console = Console(
        file=io.StringIO(),
        width=checked_count("width", width, 1),
        force_terminal=colour,
        color_system="truecolor" if colour else None,
        highlight=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        console.print(content)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"
