"""``unrolled data``: list, describe, check and fetch datasets; and ``unrolled data table``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.errors import DataError, UnrolledError, UsageError
from unrolled.lab.cli.arguments import DataFolder
from unrolled.lab.cli.text_table import write_table
from unrolled.lab.data.data_folder import data_folder
from unrolled.report.formatting import visible

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="List, describe, check and fetch datasets, and make tables of text files.",
)


def _names(incomplete: str) -> list[str]:
    from unrolled.registry import names_in_source

    return [name for name in names_in_source("unrolled.lab.data.datasets") if name.startswith(incomplete)]


@app.command("list")
def list_datasets(data_dir: DataFolder = None) -> None:
    """List all datasets: what they contain, their licences, and which are available.

    In a terminal each takes several lines; elsewhere it is a line of columns between tabs.

        unrolled data list
    """
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from unrolled.lab.data.datasets import DATASETS

    rows = [
        (name, source.kind.__name__.lower(), source.description, source.licence, _available(name, data_dir))
        for name, source in DATASETS.members.items()
    ]
    console = Console()
    for row in rows:
        if not console.is_terminal:
            typer.echo("\t".join(row))
            continue
        name, kind, description, licence, available = row
        typer.echo(f"{name}: {kind}, available: {available}")
        for line in (description, f"licence: {licence}"):
            console.print(Padding(Text(line), (0, 0, 0, 4)), highlight=False)
    _note_missing_folder(data_dir)


def _note_missing_folder(data_dir: Path | None) -> None:
    """Say that there is no data folder, so that no dataset is available but those that are generated."""
    folder = data_folder(data_dir)
    if folder is None:
        typer.echo("no data folder; pass --data-dir, or set the variable UNROLLED_DATA", err=True)
    elif not folder.is_dir():
        typer.echo(f"no folder {visible(str(folder))}; correct --data-dir, or the variable UNROLLED_DATA", err=True)


def _available(name: str, data_dir: Path | None) -> str:
    from unrolled.lab.data.collection.manifest import is_complete, read_manifest

    source = read_manifest().source(name)
    if not source.files:
        return "yes, generated"
    folder = data_folder(data_dir)
    return "yes" if folder is not None and is_complete(source, folder) else "no"


@app.command("describe")
def describe(
    name: Annotated[
        str, typer.Argument(help="A dataset's name, also with settings: dyck(2,8).", autocompletion=_names)
    ],
    data_dir: DataFolder = None,
) -> None:
    """Show the sizes of a dataset's splits, its licence, its citation and an example.

    A name may have settings:

        unrolled data describe uci-yelp
        unrolled data describe 'dyck(2,8)'
    """
    from rich.console import Console

    from unrolled.lab.data.collection.manifest import read_manifest
    from unrolled.lab.data.load import configured_dataset
    from unrolled.lab.data.summary import show_example, split_sizes

    source = configured_dataset(name)
    console = Console()
    known = read_manifest().source(source.name)
    _print(console, f"{name}: {source.description if name == source.name else f'{source.name}, with settings'}")
    _print(console, f"kind      {source.kind.__name__.lower()}")
    _print(console, f"licence   {source.licence}")
    _print(console, f"cite      {source.citation}")
    for path in known.files:
        _print(console, f"file      {path}")
    if known.request_url:
        _print(console, f"ask       {known.request_url}")
    if _available(source.name, data_dir) == "no":
        _print(console, "not available: " + _advice(source.name))
        _note_missing_folder(data_dir)
        return
    corpus = source.read(data_dir)
    for size in split_sizes(corpus):
        _print(console, f"{size.split:9} {size.count:,} {size.what}; {size.details}")
    for number, line in enumerate(show_example(corpus).split("\n")):
        _print(console, f"{'' if number else 'example':9} {line}")


def _advice(name: str) -> str:
    from unrolled.lab.data.collection.manifest import read_manifest

    manifest = read_manifest()
    if all(manifest.files[path].downloadable for path in manifest.source(name).files):
        return f"unrolled data fetch {name}"
    return "put its files into the folder of --data-dir, or of the variable UNROLLED_DATA"


def _print(console: Console, line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=not console.is_terminal)


@app.command("check")
def check_datasets(
    names: Annotated[
        list[str] | None, typer.Argument(help="Datasets; by default all that are available.", autocompletion=_names)
    ] = None,
    data_dir: DataFolder = None,
) -> None:
    """Compare checksums and counts with the published ones; the exit code is 65 if something differs.

    Without names, all available datasets are checked:

        unrolled data check
        unrolled data check uci-yelp sst2
    """
    from rich.console import Console

    from unrolled.lab.data.collection.manifest import check_dataset, read_manifest

    manifest = read_manifest()
    chosen = names or [name for name in manifest.names() if _available(name, data_dir) != "no"]
    for name in chosen:
        manifest.source(name)
    if not names:
        _note_missing_folder(data_dir)
    console, errors = Console(), Console(stderr=True)
    wrong: list[UnrolledError] = []
    for name in chosen:
        try:
            with errors.status(f"checking {name}"):
                for line in check_dataset(name, manifest, data_dir):
                    _print(console, line)
        except UnrolledError as error:
            _print(console, f"WRONG  {error}")
            wrong.append(error)
    if wrong:
        first = next((error for error in wrong if isinstance(error, DataError)), wrong[0])
        raise first


app.command("table")(write_table)


@app.command("fetch")
def fetch_dataset(
    name: Annotated[str, typer.Argument(help="A dataset's name.", autocompletion=_names)],
    data_dir: DataFolder = None,
) -> None:
    """Download a dataset whose licence permits it, and check it.

    Nothing is downloaded without this command.

        unrolled data fetch uci-yelp --data-dir data
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from unrolled.lab.data.hub import fetch_hub_dataset
    from unrolled.named_sources import is_hub_dataset

    if is_hub_dataset(name):
        sizes = fetch_hub_dataset(name)
        typer.echo(f"{name}: " + ", ".join(f"{split} {count:,}" for split, count in sizes.items()))
        return
    from unrolled.lab.data.collection.fetch import fetch_dataset
    from unrolled.lab.data.collection.manifest import read_manifest

    folder = data_folder(data_dir)
    if folder is None:
        raise UsageError("no data folder; pass --data-dir, or set the variable UNROLLED_DATA, to say where to write")
    console, errors = Console(), Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        bars: dict[str, object] = {}

        def report(address: str, here: int, size: int | None) -> None:
            if address not in bars:
                bars[address] = progress.add_task(address.rpartition("/")[2], total=size)
            progress.update(bars[address], completed=here)  # type: ignore[arg-type]  # a task's number

        for line in fetch_dataset(name, read_manifest(), folder, report):
            _print(console, line)
