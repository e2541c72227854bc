"""``unrolled demo``: train two networks on made-up reviews, and explain how they process negation."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from unrolled.lab.training.run_folder import Run

__all__ = ["demo"]

_SENTENCE = "in the end the film was not not charming"
_NETWORKS: tuple[Literal["gru", "lstm"], ...] = ("gru", "lstm")
_EXPANSIONS = ("activation", "zero", "secant")
_ABOUT = """\
Each number is a mean over the adjectives ± their standard deviation. As in the
paper it is the n-gram's own term: its part of the difference of the two logits,
without the shorter n-grams that the score of a phrase includes. Above 0
it speaks for "positive", below 0 for "negative". The paper does not say what
its ± is; its numbers are of its own networks, opened by the activation
expansion. The error of the sum is the distance between the sum of all n-grams
of a double negation and the network's state, divided by the norm of the state."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs, the page and the figure.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same networks.")] = 0,
) -> None:
    """Train a GRU and an LSTM on sentences with negations, and explain them: about a minute, no data needed."""
    from rich.console import Console

    from unrolled.lab.cli.polarity_table import table
    from unrolled.lab.data.datasets.negation import NEGATIVE, POSITIVE

    console = Console(highlight=False)
    runs = {name: _train(name, out / name, seed, console) for name in _NETWORKS}
    adjectives = {"positive": POSITIVE, "negative": NEGATIVE}
    for name, run in runs.items():
        title = f"{name.upper()}: terms of adjectives alone, after not, after not not"
        console.print()
        console.print(table(title, run, adjectives, _EXPANSIONS))
    console.print(_ABOUT)
    console.print()
    written = _open_sentence(runs[_NETWORKS[0]], out, console)
    console.print()
    for what, path in written.items():
        console.print(f"{what:8} {path}", soft_wrap=True)
    console.print("\nWhat to try next:", style="bold")
    lstm, gru = quote(str(out / "lstm")), quote(str(out / "gru"))
    for words in (
        f'explain {lstm} "overall , this story is not boring" --html mine.html',
        f'explain {gru} "their films were not awesome" --expansion zero',
        "train classify --help",
    ):
        typer.echo(f"  {_program()} {words}")


def _program() -> str:
    """Return the name of this program if the shell finds it, else its path."""
    found = shutil.which("unrolled") or Path(sys.argv[0]).name != "unrolled"
    return "unrolled" if found else quote(sys.argv[0])


def _train(encoder: Literal["gru", "lstm"], folder: Path, seed: int, console: Console) -> Run:
    from unrolled.lab.data.datasets.negation import NegationReviews
    from unrolled.lab.models.settings import PooledSettings
    from unrolled.lab.tasks.classify import Classify
    from unrolled.lab.training.data_settings import DataSettings
    from unrolled.lab.training.engine import train
    from unrolled.lab.training.progress import TrainingProgress
    from unrolled.lab.training.settings import TrainingSettings

    architecture = PooledSettings(encoder=encoder, hidden=100, embedding=100, dropout=0.0, word_dropout=0.0)
    # The paper trains with Adagrad too. Longer training changes no prediction, but larger weights leave the
    # expansions that are not exact further from the network.
    settings = TrainingSettings(epochs=4, batch=32, optimiser="adagrad", lr=0.01, device="cpu", seed=seed)
    corpus, data = NegationReviews().read(), DataSettings(data=("negation",))
    task = Classify.from_corpus(corpus, architecture)
    console.print(f"training: {encoder.upper()} on the negation corpus", style="bold")
    with TrainingProgress(console) as progress:
        run = train(task, corpus, settings, folder, data=data, force=True, callback=progress)
    console.print(f"test accuracy {run.metrics['test_accuracy']:.1%}")
    return run


def _open_sentence(run: Run, out: Path, console: Console) -> dict[str, Path]:
    """Explain one sentence in the terminal, on a page and, where matplotlib is installed, in a figure."""
    from unrolled.lab.cli.runs import prepare_sentence
    from unrolled.report.figure import save_figure

    chosen = prepare_sentence(run, _SENTENCE).choose_target("positive", against="negative")
    explanation = chosen.explain("secant")
    colour = console.is_terminal and not console.no_color
    typer.echo(explanation.render(width=console.width, colour=colour), nl=False)
    written = {"page": out / "report.html"}
    others, _ = chosen.explain_by_others(explanation.expansion)
    explanation.save_html(written["page"], *others)
    if find_spec("matplotlib") is not None:
        written["figure"] = out / "triangle.png"
        save_figure(written["figure"], explanation)
    return written | {"networks": out / "gru", "": out / "lstm"}
