"""``unrolled explain``: which n-grams made a network say what it said of one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.cli.open_weights import WeightsOptions, open_weights
from unrolled.cli.prepared_input import ChosenTarget, PreparedInput
from unrolled.errors import UsageError
from unrolled.extras import open_run

if TYPE_CHECKING:
    from unrolled.explanation.explanation import Explanation

__all__ = ["explain"]

_BARE = "A bare network, instead of a run"
_WHERE = "Files to write"
_MANY, _NAMED = 12, 5
"""Of more outputs than the first, so many are named: the highest."""


def _to(help_text: str, *names: str) -> typer.models.OptionInfo:
    return typer.Option(*names, help=help_text, rich_help_panel=_WHERE, show_default=False)


def _bare(help_text: str) -> typer.models.OptionInfo:
    return typer.Option(help=help_text, rich_help_panel=_BARE, show_default=False)


def explain(
    words: Annotated[
        list[str],
        typer.Argument(metavar="[RUN] SENTENCE", help="A run folder and a sentence; with --weights, a sentence."),
    ],
    target: Annotated[
        str | None,
        typer.Option(help="The class to explain: label or number.", show_default="the predicted one"),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Explain by how much it beats this class.", show_default=False)
    ] = None,
    at: Annotated[
        int | None,
        typer.Option(
            help="Which word's tag, after which word, or which word of a translation: from 0.",
            show_default="the last; of a translation, unless its beginning is given, the first",
        ),
    ] = None,
    expansion: Annotated[
        str, typer.Option(help="path, operating, gates, zero, activation, taylor(K), mean(operating,path).")
    ] = "path",
    top: Annotated[int, typer.Option(min=0, help="How many n-grams to list.")] = 10,
    html: Annotated[Path | None, _to("The page, with all expansions side by side.")] = None,
    png: Annotated[Path | None, _to("The triangle: .png, .svg or .pdf.")] = None,
    json_file: Annotated[Path | None, _to("Every n-gram, and the ledger.", "--json")] = None,
    weights: Annotated[Path | None, _bare("Its safetensors file.")] = None,
    vocab: Annotated[Path | None, _bare("Its words: one a line, or a JSON list or map.")] = None,
    unk: Annotated[str | None, _bare("Which of them stands for unknown ones.")] = None,
    rnn: Annotated[str | None, _bare("Which recurrent network, by its prefix.")] = None,
    embedding: Annotated[str | None, _bare("Which tensor is the embedding.")] = None,
    head: Annotated[str | None, _bare("Which tensor is the head's matrix.")] = None,
    nonlinearity: Annotated[str | None, _bare("tanh or relu, of an Elman network.")] = None,
) -> None:
    """Show which n-grams made a network say what it said, and account for the whole logit.

    A run of rank is asked with "question ||| sentence", one of translate with "sentence ||| beginning" or a sentence:

        unrolled explain runs/sst2-gru 'it is not a bad film'
        unrolled explain runs/wikiqa-gru 'where is lincoln ? ||| lincoln lies in nebraska .'
        unrolled explain runs/multi30k-gru 'ein mann liest . ||| a man'
    """
    from unrolled.report.figure import save_figure
    from unrolled.report.json_records import save_json

    hints = {"unk": unk, "rnn": rnn, "embedding": embedding, "head": head, "nonlinearity": nonlinearity}
    question = _open(words, weights, vocab, hints, at).ask(target, against)
    explanation = question.explain(expansion)
    _show(question, explanation, top)
    if html is not None:
        others, left_out = question.explain_otherwise(explanation.expansion)
        explanation.save_html(html, *others)
        typer.echo(f"page: {html}" + (f" (without {'; '.join(left_out)})" if left_out else ""))
    if png is not None:
        save_figure(png, explanation)
        typer.echo(f"figure: {png}")
    if json_file is not None:
        save_json(json_file, [explanation])
        typer.echo(f"every n-gram: {json_file}")


def _open(
    words: Sequence[str], weights: Path | None, vocab: Path | None, hints: dict[str, str | None], at: int | None
) -> PreparedInput:
    if weights is not None:
        if vocab is None:
            raise UsageError("--weights needs --vocab; expected the file of the network's words")
        if at is not None:
            raise UsageError(f"--at is {at} beside --weights; expected none: a bare network reads out its last state")
        return open_weights(WeightsOptions(weights, vocab, **hints), " ".join(words))
    given = [f"--{name}" for name, value in {"vocab": vocab, **hints}.items() if value is not None]
    if given:
        raise UsageError(f"{given[0]} describes a bare network; expected --weights FILE beside it")
    if len(words) < 2:
        raise UsageError(f"only {words[0]!r} came; expected a run folder and a sentence")
    case: PreparedInput = open_run(Path(words[0]), " ".join(words[1:]), at)
    return case


def _show(question: ChosenTarget, explanation: Explanation, top: int) -> None:
    from rich.console import Console

    from unrolled.report.formatting import signed, visible
    from unrolled.report.terminal import to_text

    console = Console()
    logits = question.logits
    named = sorted(range(len(logits)), key=logits.__getitem__, reverse=True)[:_NAMED] if len(logits) > _MANY else None
    said = "  ".join(f"{visible(question.case.name(k))} {signed(logits[k])}" for k in (named or range(len(logits))))
    if named is not None:
        said += f"  … and {len(logits) - len(named):,} lower"
    typer.echo(f"the network says: {said}\n")
    colour = console.is_terminal and not console.no_color
    typer.echo(to_text(explanation, console.width, colour, top))
