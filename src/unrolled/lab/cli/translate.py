"""``unrolled translate``: translate sentences with a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.cli.texts_of_users import write_text
from unrolled.lab.cli.arguments import run_argument
from unrolled.lab.cli.runs import load_for_task
from unrolled.lab.cli.sentences import Numbered, given_sentences
from unrolled.lab.cli.unknown_words import say_unknown
from unrolled.named_sources import check_run

if TYPE_CHECKING:
    from unrolled.lab.tasks.translate import Translate
    from unrolled.lab.training.run_folder import Run

__all__ = ["translate"]


def translate(
    run: Annotated[Path, run_argument("The run folder of a task translate.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="SENTENCE", help="A sentence; without one, or with -, the lines of standard input."),
    ] = None,
    beam: Annotated[int, typer.Option(min=1, help="Beam width; 1 takes the most likely word at each step.")] = 5,
) -> None:
    """Translate a sentence, or each line of standard input, with a trained model.

    Words need no quotes. Several sentences in quotes are translated one by one.

        unrolled translate runs/multi30k-gru ein mann liest ein buch .
    """
    check_run(run)
    sentences = given_sentences(words)
    from unrolled.lab.tasks.translate import Translate

    loaded, task = load_for_task(run, Translate, "the task translate")
    for some in sentences:
        for said in _translated(loaded, task, some, beam):
            write_text(f"{said}\n")


def _translated(run: Run, task: Translate, lines: Sequence[Numbered], beam: int) -> list[str]:
    """Translate some lines; an empty line stays empty, so that line numbers match."""
    import torch

    said = [""] * len(lines)
    read = {place: tokens for place, (_, line) in enumerate(lines) if (tokens := task.tokenise(line))}
    if not read:
        return said
    for place, tokens in read.items():
        if unknown := task.source.unknown(tokens):
            number = lines[place][0]
            say_unknown(unknown, "" if number is None else f"line {number}: ")
    rows = [task.encode_source(tokens) for tokens in read.values()]
    source = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    found = task.translate(run.model, source, torch.tensor([len(row) for row in rows]), beam)
    for place, words in zip(read, found, strict=True):
        said[place] = " ".join(task.target.decode(words))
    return said
