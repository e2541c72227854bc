"""The account in a terminal: readable without colour, since every number bears its sign.

Tokens are set as text, never as rich's markup, and their control characters are made visible: a token can
neither colour the terminal nor move its cursor.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.style import Style
from rich.table import Table
from rich.text import Text

from unrolled.decomposition.attribution import Attribution
from unrolled.report.colour import colour, ink, shared_limit
from unrolled.report.formatting import brief, clip, signed, size, visible
from unrolled.report.page_view import rows

__all__ = ["render", "to_text"]

_TOP = 8
_CELL = 8
_FAINT = Style(dim=True)


def _tint(value: float, limit: float) -> Style:
    background = colour(value, limit)
    return Style(color=ink(background), bgcolor=background)


def _fit(text: str, width: int) -> str:
    """Cut or pad a text to a number of terminal cells; wide letters and emoji take two."""
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    before = (width - cell_len(text)) // 2
    return set_cell_size(" " * before + text, width)


def _heading(account: Attribution) -> Text:
    exact = "exact" if account.exact else "not exact"
    local = "local" if account.local else "not local"
    return Text.assemble(
        (visible(account.target), "bold"),
        f"  logit {signed(account.ledger.logit)}  ",
        (f"by {visible(account.expansion)} ({exact}, {local})", _FAINT),
    )


@dataclass(frozen=True)
class _Sentence:
    """Each token over its total, as many to a line as fit."""

    account: Attribution
    limit: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names, numbers = Text(), Text(style=_FAINT)
        for token, total in zip(self.account.tokens, self.account.token_scores.tolist(), strict=True):
            name, number = visible(token), brief(total, self.limit)
            width = min(max(cell_len(name), len(number)) + 2, options.max_width - 1)
            if names.cell_len + width > options.max_width:
                yield from (names, numbers)
                names, numbers = Text(), Text(style=_FAINT)
            names.append(_fit(name, width), _tint(total, self.limit)).append(" ")
            numbers.append(_fit(number, width)).append(" ")
        yield from (names, numbers)


@dataclass(frozen=True)
class _Pyramid:
    """The triangle of scores, where the terminal is wide enough for it."""

    account: Attribution
    d: int
    limit: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        account, count = self.account, len(self.account)
        direction = account.directions[self.d]
        name = "scores of the n-grams" + (f", {direction}" if len(account.directions) > 1 else "")
        if count * _CELL > options.max_width:
            yield Text(f"{name}: left out, the triangle needs {count * _CELL} columns", style=_FAINT)
            return
        yield Text(name, style=_FAINT)
        for k, row in reversed(list(enumerate(rows(account.triangle.scores[self.d], direction, count)))):
            line = Text(" " * (k * _CELL // 2))
            for value in row:
                line.append(_fit(brief(value, self.limit), _CELL - 1), _tint(value, self.limit)).append(" ")
            yield line
        yield Text("".join(_fit(visible(token), _CELL - 1) + " " for token in account.tokens))


def _ledger(account: Attribution) -> Table:
    ledger = account.ledger
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    entries = (
        ("  n-grams", ledger.ngrams),
        ("+ initial state", ledger.initial),
        ("+ bias", ledger.bias),
        ("+ remainder", ledger.remainder),
    )
    for name, value in entries:
        table.add_row(Text(name), Text(signed(value)))
    table.add_row(Text("= logit", "bold"), Text(signed(ledger.logit), "bold"))
    return table


def _top(account: Attribution, limit: float, count: int) -> Table:
    both = len(account.directions) > 1
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=_FAINT, pad_edge=False)
    # Only the words give way where the terminal is narrow.
    table.add_column("contribution", justify="right", no_wrap=True, min_width=12)
    table.add_column("score", justify="right", no_wrap=True, min_width=8)
    table.add_column("tokens", no_wrap=True, min_width=17 if both else 8)
    table.add_column("n-gram", overflow="ellipsis", no_wrap=True)
    for ngram in account.top(count):
        span = f"[{ngram.start}, {ngram.stop})" + (f" {ngram.direction}" if both else "")
        table.add_row(
            Text(signed(ngram.contribution), _tint(ngram.contribution, limit)),
            Text(signed(ngram.score)),
            Text(span, _FAINT),
            Text(clip(visible(ngram.text), 200)),
        )
    return table


def _small_print(account: Attribution) -> Text:
    lines = [
        f"remainder {size(account.relative_remainder)} of the logit, residual {size(account.residual)}, "
        f"parity {size(account.parity)}"
    ]
    if account.scope != "tokens":
        lines.append(f"the n-grams are n-grams of {visible(account.scope)}")
    lines.extend(visible(note) for note in account.notes)
    return Text("\n".join(lines), style=_FAINT)


def render(account: Attribution, limit: float | None = None, top: int = _TOP) -> RenderableType:
    """Draw an account for a terminal.

    Args:
        account: what is shown.
        limit: the value at the ends of the colour scale; set it to compare accounts.
        top: how many n-grams to list.

    Returns:
        What ``rich.print`` or a ``Console`` prints; the triangle is there where the width allows it.

    Raises:
        NonFiniteError: when the account holds NaN or infinity.
    """
    ends = shared_limit([account], "score") if limit is None else limit
    blocks: list[RenderableType] = [_heading(account), _Sentence(account, ends)]
    blocks += [_Pyramid(account, d, ends) for d in range(len(account.directions))]
    blocks.append(_ledger(account))
    blocks.append(_top(account, shared_limit([account], "contribution"), top))
    blocks.append(_small_print(account))
    return Group(*[part for block in blocks for part in (block, Text())][:-1])


def to_text(account: Attribution, width: int = 100, colour: bool = False, top: int = _TOP) -> str:
    """Write an account as text.

    Args:
        account: what is shown.
        width: of a line, in columns.
        colour: whether to colour it, with ANSI sequences.
        top: how many n-grams to list.

    Returns:
        The text, lines without trailing blanks.

    Raises:
        NonFiniteError: when the account holds NaN or infinity.
    """
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="truecolor" if colour else None,
        highlight=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        console.print(render(account, top=top))
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"
