"""``unrolled explain``: which n-grams made a network produce its output for one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.atomic_write import atomic_write
from unrolled.cli.completed_values import expansion_names, run_folders
from unrolled.cli.explain_arguments import check_files, check_written, refuse_without_files, split_words
from unrolled.cli.explain_file import FileOptions, NumberedText, explain_texts, write_ngrams
from unrolled.cli.left_output import outlast_reader
from unrolled.cli.output_file import check_not_read
from unrolled.cli.prepared_input import ONLY_OUTPUT, ChosenTarget, PreparedInput, WeightsOptions, open_weights
from unrolled.cli.texts_of_users import check_encoded
from unrolled.errors import DataError, FileError, UsageError
from unrolled.laboratory import files_of_run, open_run, read_texts
from unrolled.report.formatting import harmless, visible
from unrolled.weights.foreign_file import describe_foreign

if TYPE_CHECKING:
    from unrolled.explanation.explanation import Explanation

__all__ = ["explain"]

_WEIGHTS = "A file of weights, instead of a run"
_WHERE = "Files to write"
_TEXTS = "Many texts"
_VOCABULARY = (
    "Its vocabulary: one word a line, or a JSON list or map. The sentence is split at spaces; a word that it lacks is "
    "read in lower case, else as --unk."
)
_FILES = (
    "Tables, JSON lines, a text a line, or hf:NAME, instead of a sentence; - for standard input, a text a line, a "
    "table with a header, or JSON lines."
)
_PHRASES = "A CSV table of the phrases of all texts, by their mean score for --target; shown on the page too."
_LISTED, _ON_A_PAGE = 10, 200
"""N-grams in the terminal, and texts on a page, if the user names no number."""
_MANY, _NAMED = 12, 5
"""Of more than _MANY outputs, only the _NAMED highest are listed."""


def _option(panel: str, help_text: str, *names: str) -> typer.models.OptionInfo:
    return typer.Option(*names, help=help_text, rich_help_panel=panel, show_default=False)


_file_option = partial(_option, _WHERE)
_many_option = partial(_option, _TEXTS)
_weights_option = partial(_option, _WEIGHTS)


def _first_word(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer run folders for the first word, if it is no sentence."""
    given = ctx.params.get("words") or []
    return [] if given or ctx.params.get("weights") else run_folders(incomplete)


def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN SENTENCE",
            help="A run folder and a sentence; with --weights, a sentence; with --file, no sentence.",
            autocompletion=_first_word,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="The class to explain: label or number.",
            show_default="the predicted one; of two classes, the difference of their logits",
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Explain the difference to the logit of this class.", show_default=False)
    ] = None,
    at: Annotated[
        int | None,
        typer.Option(
            help="Position, from 0, of the word whose tag, next word or translation is explained.",
            show_default="the last word; of a translation without a beginning, the first",
        ),
    ] = None,
    expansion: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(expansion_names(''))}; with arguments: shares(P), taylor(K), mean(operating,path).",
            autocompletion=expansion_names,
        ),
    ] = "secant",
    top: Annotated[
        int | None, typer.Option(min=0, help="Number of n-grams to list.", show_default=str(_LISTED))
    ] = None,
    max_order: Annotated[
        int | None, typer.Option(min=1, help="Number of tokens of the longest n-grams.", show_default="all")
    ] = None,
    html: Annotated[Path | None, _file_option("An HTML page with all expansions side by side.")] = None,
    png: Annotated[Path | None, _file_option("The triangle of phrase scores: .png, .svg or .pdf.")] = None,
    json_file: Annotated[Path | None, _file_option("All n-grams and the ledger.", "--json")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.", rich_help_panel=_WHERE)] = False,
    files: Annotated[list[Path] | None, _many_option(_FILES, "--file")] = None,
    text_column: Annotated[str | None, _many_option("Column of the texts: its name, or its number from 1.")] = None,
    no_header: Annotated[bool, _many_option("Read the first line as a text.", "--no-header")] = False,
    split: Annotated[str | None, _many_option("Split of hf:NAME or hf:FOLDER; by default test.")] = None,
    page_texts: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Largest number of texts on the page and in the JSON file.",
            rich_help_panel=_TEXTS,
            show_default=str(_ON_A_PAGE),
        ),
    ] = None,
    phrases: Annotated[Path | None, _many_option(_PHRASES, "--phrases")] = None,
    weights: Annotated[Path | None, _weights_option("The safetensors file.")] = None,
    vocab: Annotated[Path | None, _weights_option(_VOCABULARY)] = None,
    unk: Annotated[str | None, _weights_option("The word for unknown words.")] = None,
    rnn: Annotated[str | None, _weights_option("Prefix of the recurrent network's tensors.")] = None,
    embedding: Annotated[str | None, _weights_option("The embedding's name; it may have more rows than words.")] = None,
    head: Annotated[str | None, _weights_option("Name of the head's weight matrix.")] = None,
    nonlinearity: Annotated[str | None, _weights_option("tanh or relu, for an Elman network.")] = None,
    classes: Annotated[str | None, _weights_option("Names of the outputs: negative,positive.")] = None,
) -> None:
    """Explain which n-grams made a network produce its output; the parts add up to the logit.

    A run of the task rank takes "question ||| sentence"; of translate, a sentence or "sentence ||| beginning":

        unrolled explain runs/sst2-gru 'it is not a bad film'
        unrolled explain runs/wikiqa-gru 'where is lincoln ? ||| lincoln lies in nebraska .'
        unrolled explain runs/multi30k-gru 'ein mann liest . ||| a man'
        unrolled explain --weights model.safetensors --vocab words.txt 'it is not a bad film'
        unrolled explain runs/reviews --file new.csv --html page.html
        unrolled explain runs/reviews --file new.csv --target good --against bad --phrases phrases.csv
    """
    hints = {"unk": unk, "rnn": rnn, "embedding": embedding, "head": head, "nonlinearity": nonlinearity}
    hints["classes"] = classes
    run, sentence = split_words(words or [], weights, bool(files))
    check_encoded(sentence)
    check_written({"--html": html, "--png": png, "--json": json_file, "--phrases": phrases}, force)
    read = [*(files or ()), *filter(None, (weights, vocab)), *(() if run is None else files_of_run(run))]
    for path in (html, png, json_file, phrases):
        check_not_read(path, read)
    if files:
        check_files(files, png, top, page_texts, written=html is not None or json_file is not None)
        several = len(set(files)) > 1
        most = page_texts or _ON_A_PAGE
        options = FileOptions(target, against, expansion, html, json_file, phrases, most, not force, several, max_order)
        opener = _opener(run, weights, vocab, hints, at)
        title = ", ".join(_shown(path).name for path in files)
        with outlast_reader((html, json_file, phrases)):
            explain_texts(_texts(files, text_column, not no_header, split, run), opener, options, title)
        return
    refuse_without_files(
        {
            "--text-column": text_column,
            "--no-header": no_header or None,
            "--split": split,
            "--page-texts": page_texts,
            "--phrases": phrases,
        }
    )
    if os.path.isfile(sentence):  # noqa: PTH113  # a sentence may be longer than a path can be
        typer.echo(harmless(f"{sentence} is a file, whose name is explained; for its texts give --file"), err=True)
    chosen = _opener(run, weights, vocab, hints, at)(sentence).choose_target(target, against)
    explanation = chosen.explain(expansion, max_order)
    with outlast_reader((html, png, json_file)):
        _print(chosen, explanation, _LISTED if top is None else top)
        _write(chosen, explanation, html, png, json_file, not force)


def _write(
    chosen: ChosenTarget,
    explanation: Explanation,
    html: Path | None,
    png: Path | None,
    json_file: Path | None,
    new: bool,
) -> None:
    """Write files; if they are to be ``new``, one that another process has written since is an error."""
    from unrolled.report.figure import check_format, render_figure
    from unrolled.report.page import render_page

    if html is not None:
        others, left_out = chosen.explain_by_others(explanation.expansion, explanation.max_order)
        atomic_write(html, render_page((explanation, *others)).encode(), new=new)
        typer.echo(f"page: {visible(str(html))}" + (f" (without {'; '.join(left_out)})" if left_out else ""))
    if png is not None:
        atomic_write(png, render_figure(explanation, check_format(png)), new=new)
        typer.echo(f"figure: {visible(str(png))}")
    if json_file is not None:
        write_ngrams(json_file, [explanation], new)


def _texts(
    files: Sequence[Path], text_column: str | None, header: bool, split: str | None, run: Path | None
) -> Iterator[NumberedText]:
    def say(note: str) -> None:
        typer.echo(harmless(note), err=True)

    for path in files:
        for line, text in read_texts(path, text_column, header, split, run, say):
            yield NumberedText(_shown(path), line, text)


def _shown(path: Path) -> Path:
    """Name a file, or standard input, to the user."""
    return Path("standard input") if str(path) == "-" else path


def _opener(
    run: Path | None, weights: Path | None, vocab: Path | None, hints: dict[str, str | None], at: int | None
) -> Callable[[str], PreparedInput]:
    """Return what prepares a sentence for the model of a run folder or of a file of weights."""
    if weights is not None:
        if vocab is None:
            raise UsageError("--weights needs --vocab: the file of the network's words")
        if at is not None:
            raise UsageError(f"--at is {at}, but a file of weights has one output; leave out --at")
        for path in (weights, vocab):
            if not path.exists():
                raise FileError(f"{path}: cannot be read: No such file or directory")
        return open_weights(WeightsOptions(weights, vocab, **hints))
    given = [f"--{name}" for name, value in {"vocab": vocab, **hints}.items() if value is not None]
    if given:
        raise UsageError(f"{given[0]} describes a file of weights; give --weights FILE as well")
    assert run is not None
    if run.is_file():
        if foreign := describe_foreign(run):
            raise DataError(foreign)
        tensors = run.with_suffix(".safetensors")
        first = "" if tensors == run else f"unrolled convert {run} {tensors}, then "
        raise DataError(
            f"{run} is a file, not a run folder; if it holds weights: {first}unrolled explain --weights {tensors} "
            "--vocab WORDS.txt SENTENCE"
        )
    return open_run(run, at)


def _print(chosen: ChosenTarget, explanation: Explanation, top: int) -> None:
    from rich.console import Console

    from unrolled.report.formatting import signed
    from unrolled.report.terminal import to_text

    console = Console()
    logits = chosen.logits
    named = sorted(range(len(logits)), key=logits.__getitem__, reverse=True)[:_NAMED] if len(logits) > _MANY else None
    logits_line = "  ".join(
        f"{visible(chosen.prepared.class_name(k))} {signed(logits[k])}" for k in (named or range(len(logits)))
    )
    if named is not None:
        logits_line += f"  … and {len(logits) - len(named):,} lower"
    kind = "logits: " if len(logits) > 1 else "" if chosen.prepared.labels == (ONLY_OUTPUT,) else "output: "
    typer.echo(f"{kind}{logits_line}\n")
    colour = console.is_terminal and not console.no_color
    typer.echo(to_text(explanation, console.width, colour, top))
