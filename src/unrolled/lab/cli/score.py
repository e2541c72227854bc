"""``unrolled score``: how likely a trained language model finds texts, word by word."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from unrolled.cli.texts_of_users import check_encoded
from unrolled.errors import UsageError
from unrolled.lab.cli.arguments import run_argument
from unrolled.lab.cli.runs import load_for_task
from unrolled.lab.cli.unknown_words import say_unknown
from unrolled.named_sources import check_run
from unrolled.report.formatting import harmless, visible

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["score"]


def score(
    run: Annotated[Path, run_argument("The run folder of a task lm or chars.")],
    texts: Annotated[list[str], typer.Argument(metavar="TEXT", help="One text, or several to rank.")],
    tokens: Annotated[bool, typer.Option("--tokens", help="Show the surprisal of every token.")] = False,
) -> None:
    """Score texts by a trained language model, and rank them: the likeliest first.

    The surprisal of a token is -log2 of its probability after the tokens before it, in bits. A text is scored after the
    end of a line. Texts of different lengths are best compared by the mean surprisal of a token.

        unrolled score runs/ptb-lstm 'the old man the boat' 'the old man is the boat' --tokens
    """
    check_run(run)
    for text in texts:
        check_encoded(text)
    from typing import cast

    from rich.console import Console

    from unrolled.lab.models.language_model import LanguageModel
    from unrolled.lab.models.surprisal import surprisals
    from unrolled.lab.training.language_modelling import LanguageTask

    loaded, task = load_for_task(run, LanguageTask, "lm or chars, which score text")  # type: ignore[type-abstract]  # an instance is asked for
    model, vocabulary = cast("LanguageModel", loaded.model), task.vocabulary
    split = [task.tokenise(text) for text in texts]
    if not all(split):
        raise UsageError("a text is empty; give at least one token")
    found = []
    for text, words in zip(texts, split, strict=True):
        if unknown := vocabulary.unknown(words):
            say_unknown(unknown)
        bits = surprisals(model, task.line_end, vocabulary.encode(words), task.architecture.bptt)
        found.append(_Scored(text, words, bits))
    found.sort(key=lambda each: each.total)
    console = Console(highlight=False)
    _print_ranking(console, found)
    if tokens:
        for each in found:
            _print_tokens(console, each)


class _Scored(NamedTuple):
    """A text with the surprisal of each of its tokens, in bits."""

    text: str
    words: Sequence[str]
    bits: Sequence[float]

    @property
    def total(self) -> float:
        """The surprisal of the text."""
        return sum(self.bits)


def _print_ranking(console: Console, found: Sequence[_Scored]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("bits", "bits a token", "tokens", "text"):
        table.add_column(title, justify="left" if title == "text" else "right", no_wrap=title != "text")
    for each in found:
        mean = each.total / len(each.bits)
        table.add_row(f"{each.total:.2f}", f"{mean:.3f}", f"{len(each.words)}", escape(harmless(each.text)))
    console.print(table)


def _print_tokens(console: Console, found: _Scored) -> None:
    from rich.markup import escape

    console.print()
    for word, bits in zip(found.words, found.bits, strict=True):
        console.print(f"{bits:7.2f}  {escape(visible(word))}")
