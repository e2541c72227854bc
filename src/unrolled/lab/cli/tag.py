"""``unrolled tag``: tag the tokens of sentences with a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unrolled.cli.texts_of_users import write_text
from unrolled.lab.cli.arguments import run_argument
from unrolled.lab.cli.runs import load_for_task
from unrolled.lab.cli.sentences import given_sentences
from unrolled.lab.cli.unknown_words import say_unknown
from unrolled.named_sources import check_run
from unrolled.report.formatting import counted

__all__ = ["tag"]


def tag(
    run: Annotated[Path, run_argument("The run folder of a task tag.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="SENTENCE", help="A sentence; without one, or with -, the lines of standard input."),
    ] = None,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="The sentences are tokens already: split them at spaces only.")
    ] = False,
) -> None:
    """Tag each token of a sentence, or of each line of standard input, with a trained model.

    Every line of the output is a token and its tag, with a tab between them; an empty line follows each sentence. So
    CoNLL files are written.

    Tags of spans, such as names, are those of IOBES: S-PER is a name of one token, B-PER the first token of several,
    I-PER one inside, E-PER the last.

    A tagger reads capital letters: type words as a text has them. They need no quotes; several sentences in quotes are
    tagged one by one.

        unrolled tag runs/conll2003-lstm Anna Wells met Boris in Paris .
        unrolled tag runs/conll2003-lstm < sentences.txt > tagged.tsv
    """
    check_run(run)
    sentences = given_sentences(words)
    from unrolled.lab.data.tokenise import split_at_spaces, tokenise
    from unrolled.lab.tasks.tag import Tag

    loaded, task = load_for_task(run, Tag, "the task tag")
    split = split_at_spaces if tokens else tokenise
    seen, unread, strange = 0, 0, dict[str, None]()
    for some in sentences:
        rows = [split(sentence) for _, sentence in some]
        found = iter(task.tag(loaded.model, [row for row in rows if row]))
        for row in rows:
            tags = next(found) if row else ()
            write_text("".join(f"{token}\t{name}\n" for token, name in zip(row, tags, strict=True)) + "\n")
            strange |= dict.fromkeys(task.vocabulary.unknown(row))
            unread += sum(token in strange for token in row)
            seen += len(row)
    if strange:
        few = words and words != ["-"]
        say_unknown(strange if few else [f"{unread:,} of {counted(seen, 'token')}"])
