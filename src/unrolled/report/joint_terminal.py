"""Show several sequences with one ledger in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.report.colour import shared_limit
from unrolled.report.formatting import clip, signed, visible
from unrolled.report.page_view import ledger_parts
from unrolled.report.series_terminal import Series
from unrolled.report.spans import largest_phrases_of
from unrolled.report.terminal import (
    FAINT,
    Sentence,
    details,
    heading,
    named,
    near_copies,
    print_to_text,
    spaced,
    sum_table,
)

__all__ = ["to_text"]

_TOP = 12
"""Number of n-grams to list, of all sequences together."""
_NUMBER, _GAP = 12, 2
"""Columns of a number, as wide as its heading, and between two columns."""
_LEAST = 4
"""Columns that an n-gram has in a narrow terminal."""
_NAME = "sequence"


def to_text(whole: Attribution, sequences: Sequence[Attribution], width: int = 100, colour: bool = False) -> str:
    """Return the sequences, the ledger and the n-grams with the largest contributions as text."""
    ledger, limit = whole.ledger, shared_limit(sequences, "score")
    blocks: list[RenderableType] = [heading(whole)]
    for each in sequences:
        title = Text.assemble(visible(each.name), (f"  n-grams {signed(each.ledger.ngrams)}", FAINT))
        steps = Sentence(each.tokens, each.token_scores.tolist(), limit)
        blocks += [title, steps if each.features is None else Series(each)]
    of_sequences = [ledger_parts(each.ledger, each.name)[0] for each in sequences]
    blocks.append(sum_table([*of_sequences, *ledger_parts(ledger)[1:]], (whole.unit, ledger.logit)))
    blocks += [_top(sequences, width), details(whole)]
    return print_to_text(spaced(blocks), width, colour)


def _top(sequences: Sequence[Attribution], width: int) -> Table:
    names = {id(each): clip(visible(each.name), 40) for each in sequences}
    left = width - 2 * (_NUMBER + _GAP) - max(map(cell_len, [_NAME, *names.values()])) - _GAP
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style=FAINT, pad_edge=False)
    table.add_column("contribution", justify="right", no_wrap=True, min_width=_NUMBER)
    table.add_column("phrase score", justify="right", no_wrap=True, min_width=_NUMBER)
    table.add_column(_NAME, overflow="ellipsis", no_wrap=True)
    table.add_column("n-gram", overflow="ellipsis", no_wrap=True)
    for sequence, phrase in largest_phrases_of(sequences, _TOP):
        near = near_copies(phrase)
        table.add_row(
            Text(signed(phrase.contribution)),
            Text(signed(phrase.score)),
            Text(names[id(sequence)], FAINT),
            Text.assemble(clip(named(sequence, phrase), max(_LEAST, left - len(near))), (near, FAINT)),
        )
    return table
