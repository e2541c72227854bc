"""``unrolled generate``: generate text with a trained language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unrolled.cli.texts_of_users import check_encoded, write_text
from unrolled.lab.cli.arguments import run_argument
from unrolled.lab.cli.runs import load_for_task
from unrolled.lab.cli.unknown_words import say_unknown
from unrolled.named_sources import check_run

__all__ = ["generate"]


def generate(
    run: Annotated[Path, run_argument("The run folder of a task lm or chars.")],
    prompt: Annotated[
        str, typer.Option(help="Beginning of the text, read without a line end before it; by default a line end.")
    ] = "",
    length: Annotated[int, typer.Option(min=1, help="Number of words, or characters, to generate.")] = 200,
    temperature: Annotated[
        float,
        typer.Option(min=0.0, help="Lower values make the text more conservative; 0 takes the likeliest token."),
    ] = 1.0,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Sample from this many most likely tokens only.", show_default="all"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed: the same seed, the same text.")] = 0,
) -> None:
    """Generate text with a trained language model, word by word or character by character.

    The text goes on where the prompt ends:

        unrolled generate runs/python-lstm --prompt 'def ' --length 400
    """
    check_run(run)
    check_encoded(prompt)
    from itertools import chain, islice
    from typing import cast

    import torch

    from unrolled.lab.models.language_model import LanguageModel
    from unrolled.lab.models.sampling import generate_tokens
    from unrolled.lab.training.language_modelling import LanguageTask

    loaded, task = load_for_task(run, LanguageTask, "lm or chars, which generate text")  # type: ignore[type-abstract]  # an instance is asked for
    vocabulary, tokens = task.vocabulary, task.tokenise(prompt)
    if unknown := vocabulary.unknown(tokens):
        say_unknown(unknown)
    drawn = generate_tokens(
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
        write_text(piece)
    if not piece.endswith("\n"):
        typer.echo()
