"""``unrolled train``: train a network that the other commands can open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unrolled.errors import UsageError

__all__ = ["app"]

app = typer.Typer(help="Train a recurrent network and save it to a run folder.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep `train classify` two words while there is only one command."""


@app.command()
def classify(
    data: Annotated[
        str,
        typer.Option(
            help="What to learn: negation (generated), sst2 or sst5 (from --data-dir), or FILE.tsv of yours, "
            "one text<TAB>label a line."
        ),
    ] = "negation",
    encoder: Annotated[str, typer.Option(help="The recurrent network: rnn, gru or lstm.")] = "gru",
    hidden: Annotated[int, typer.Option(help="Size of its state, for each direction.")] = 128,
    embedding: Annotated[int, typer.Option(help="Size of the word vectors.")] = 128,
    layers: Annotated[int, typer.Option(help="Recurrent layers, one on top of the other.")] = 1,
    bidirectional: Annotated[bool, typer.Option("--bidirectional", help="Read the text from both ends.")] = False,
    pooling: Annotated[
        str, typer.Option(help="What is classified: the last state, or the mean, max or attention over all.")
    ] = "last",
    dropout: Annotated[float, typer.Option(help="Share of features dropped in training, 0 to 1.")] = 0.5,
    epochs: Annotated[int, typer.Option(help="Passes over the training texts, at most.")] = 10,
    batch: Annotated[int, typer.Option(help="Texts in a batch.")] = 64,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = 0.001,
    optimiser: Annotated[str, typer.Option(help="adam, adagrad or sgd.")] = "adam",
    word_dropout: Annotated[
        float, typer.Option(help="Share of words read as <unk> in training; this is how <unk> is learned.")
    ] = 0.1,
    patience: Annotated[int, typer.Option(help="Stop after so many epochs without a better one on dev.")] = 3,
    seed: Annotated[int, typer.Option(help="Same seed, same network.")] = 0,
    out: Annotated[Path | None, typer.Option(help="The run folder to write.", show_default="runs/DATA-ENCODER")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier run of this name.")] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with sst/ in it; else the variable UNROLLED_DATA.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Train on so many texts only, drawn at random: for a quick look.")
    ] = None,
) -> None:
    """Train a text classifier: embedding, recurrent network, pooling, linear head.

    The epoch that does best on the dev texts is kept. A first run, in seconds:

        unrolled train classify --data negation --out runs/negation
    """
    from rich.console import Console

    from unrolled.catalogue import Architecture, load_dataset
    from unrolled.training.classify import train_classifier
    from unrolled.training.loop import TrainingSettings
    from unrolled.training.progress import TrainingProgress
    from unrolled.training.run_folder import check_destination, save_run

    parts: dict[str, Any] = {
        "encoder": encoder,
        "hidden": hidden,
        "embedding": embedding,
        "layers": layers,
        "bidirectional": bidirectional,
        "pooling": pooling,
        "dropout": dropout,
    }
    manner: dict[str, Any] = {
        "epochs": epochs,
        "batch": batch,
        "lr": lr,
        "optimiser": optimiser,
        "word_dropout": word_dropout,
        "patience": patience,
        "seed": seed,
    }
    architecture, settings = Architecture(**parts), TrainingSettings(**manner)
    folder = out or Path("runs") / f"{Path(data).stem}-{encoder}"
    if folder.exists() and not force:
        raise UsageError(f"{folder} exists; expected a new --out, or --force to replace an earlier run")
    check_destination(folder)

    dataset = load_dataset(data, data_dir)
    if limit is not None:
        dataset = dataset.sample(limit, seed)
    with TrainingProgress(Console(stderr=True), epochs) as progress:
        run = train_classifier(dataset, architecture, settings, progress)
    save_run(run, folder)

    typer.echo(
        f"test accuracy {run.metrics['test_accuracy']:.2%} on {len(dataset.test):,} texts, "
        f"with the weights of epoch {run.metrics['best_epoch']}, "
        f"after {run.metrics['seconds']:.0f} s; saved to {folder}"
    )
    example = " ".join(dataset.test[0].tokens)
    typer.echo(f"now open it:  unrolled explain {folder} {_quoted(example)}")


def _quoted(text: str) -> str:
    """Quote for the shell."""
    import shlex

    return shlex.quote(text)
