"""``unrolled generate``: let a trained language model write on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unrolled.errors import UsageError

__all__ = ["generate"]


def generate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder of a task lm or chars.")],
    prompt: Annotated[str, typer.Option(help="How the text begins; a new line when left out.")] = "",
    length: Annotated[int, typer.Option(min=1, help="Words, or characters, to write.")] = 200,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="0 takes the likeliest always; below 1 dares less, above 1 more.")
    ] = 1.0,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Draw among so many of the likeliest only.", show_default="all"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same text.")] = 0,
) -> None:
    """Generate text with a trained language model, word by word or character by character."""
    import sys
    from itertools import chain, islice
    from typing import cast

    import torch

    from unrolled.lab.models.generate import generate_tokens as write
    from unrolled.lab.models.language_model import LanguageModel
    from unrolled.lab.training.language_modelling import LanguageTask
    from unrolled.lab.training.run_folder import load_run

    loaded = load_run(run)
    task = loaded.task
    if not isinstance(task, LanguageTask):
        raise UsageError(f"{run} was trained for {task.name}; expected a run of lm or chars, which write text")
    vocabulary, tokens = task.vocabulary, task.tokenise(prompt)
    if unknown := vocabulary.unknown(tokens):
        typer.echo(f"not in the vocabulary, read as <unk>: {' '.join(unknown)}", err=True)
    drawn = write(
        cast("LanguageModel", loaded.model),
        vocabulary.encode(tokens) or [task.line_end],
        temperature=temperature,
        top=top,
        never=task.never_generated,
        context=task.architecture.bptt,
        generator=torch.Generator().manual_seed(seed),
    )
    words = (vocabulary.words[token] for token in islice(drawn, length))
    piece = ""
    for piece in task.detokenise(chain(tokens, words)):
        sys.stdout.write(piece)
        sys.stdout.flush()
    if not piece.endswith("\n"):
        typer.echo()
