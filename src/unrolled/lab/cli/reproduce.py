"""``unrolled reproduce``: run the papers' tables and figures, and compare ours with theirs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.cli.completed_values import paper_items
from unrolled.errors import UnknownNameError, UsageError
from unrolled.lab.cli.arguments import DataFolder
from unrolled.lab.cli.listed_items import choose_items, list_items
from unrolled.lab.cli.options import offer
from unrolled.lab.cli.printed_table import print_table
from unrolled.lab.cli.reproduction import Reproduction, TrialLines
from unrolled.lab.papers.framework.experiment import SCALES

if TYPE_CHECKING:
    from unrolled.lab.papers.framework.experiment import Experiment, Scale
    from unrolled.lab.papers.framework.result_store import ResultStore

__all__ = ["reproduce"]


def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PAPER/ITEM",
            help="Items to run; a paper's name selects all its items.",
            autocompletion=paper_items,
        ),
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List these items, or all.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Run all items.")] = False,
    scale: Annotated[
        str,
        typer.Option(
            help="smoke (made-up data, seconds; only shows that it runs), cpu (two cores, minutes), day (two cores, "
            "hours) or paper (a GPU).",
            autocompletion=offer(tuple(SCALES)),
        ),
    ] = "cpu",
    hours: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Run trials of these items, or of all, for at most this many hours, those that give most numbers for "
            "their time first; then print what is left. 0 only prints it.",
            show_default=False,
        ),
    ] = None,
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate",
            help="Make the first steps of each training of these items, or of all, and print how many hours they "
            "would take on this machine. Stores nothing.",
        ),
    ] = False,
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Begin with the word vectors of this file of the data folder, such as glove/glove.6B.300d.txt, where "
            "trials begin with pretrained ones; leave out all others. Results stand beside those with the item's own "
            "vectors; pages show the latter only.",
            show_default=False,
        ),
    ] = None,
    results: Annotated[Path, typer.Option(help="Folder of the results; trials found there are not run again.")] = Path(
        "results"
    ),
    figures: Annotated[
        Path | None, typer.Option(help="Draw the figures into this folder, as PNG.", show_default=False)
    ] = None,
    svg: Annotated[bool, typer.Option("--svg", help="With --figures: draw them as SVG too.")] = False,
    write: Annotated[
        Path | None,
        typer.Option(
            help="Write the pages of all results into this folder; or, to a name that ends in .md, one page without "
            "figures. Without items it runs nothing.",
            show_default=False,
        ),
    ] = None,
    gallery: Annotated[
        Path | None,
        typer.Option(
            help="Write a page of all figures, drawn into the folder of --figures. Without items it runs nothing.",
            show_default=False,
        ),
    ] = None,
    import_results: Annotated[
        Path | None,
        typer.Option(
            help="Add the results of this folder to those of --results; it may hold one JSON file for each trial, as "
            "earlier versions wrote them. Without items it runs nothing.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataFolder = None,
) -> None:
    """Reproduce tables and figures of the papers, and print our results beside the published ones.

    Each result is stored as soon as its trial ends. Stop at any time and run the command again to continue.

        unrolled reproduce --list
        unrolled reproduce cs577-lecture-5/memorising --scale smoke
        unrolled reproduce --scale day --hours 2
    """
    from rich.console import Console

    from unrolled.lab.papers import EXPERIMENTS
    from unrolled.lab.papers.framework.result_store import ResultStore

    if scale not in SCALES:
        raise UnknownNameError("scale", scale, SCALES)
    chosen_scale: Scale = scale
    members = [member() for member in EXPERIMENTS.members.values()]
    store = ResultStore(results)
    if estimate and hours is not None:
        raise UsageError("--estimate makes first steps only and --hours runs trials: pass one of the two")
    chosen = members if everything else choose_items(members, items or [])
    offered = chosen or members
    if vectors is not None:
        from unrolled.lab.papers.framework.other_vectors import begin_with

        offered = begin_with(offered, vectors, data_dir)
        chosen = offered if chosen else []
    if import_results is not None:
        _import_results(store, import_results)
    if list_them:
        list_items(offered, chosen_scale, store)
        return
    if estimate:
        _estimate(offered, chosen_scale, data_dir)
        return
    if hours is None and not (chosen or write or gallery or import_results):
        raise UsageError("nothing to run: pass PAPER/ITEM, --all or --list")
    if gallery is not None and figures is None:
        raise UsageError(f"no folder for the figures of {gallery}: pass --figures")
    command = _kept_command(["--all"] if everything else items or [], scale, vectors, hours)
    reproduction = Reproduction(chosen_scale, store, command, data_dir, TrialLines(Console(stderr=True)))
    if hours is not None:
        reproduction.run_queue(offered, hours)
    else:
        for experiment in chosen:
            reproduction.run(experiment, figures, svg)
    _write_pages(members, store, figures, write, gallery)


def _import_results(store: ResultStore, folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: pass a folder of results to --import-results")
    typer.echo(f"imported: {store.import_from(folder)} results")


def _kept_command(items: list[str], scale: str, vectors: str | None, hours: float | None) -> str:
    """Write the command that a result keeps: without folders, which are of one machine only."""
    words = [*items, "--scale", scale]
    words += [] if vectors is None else ["--vectors", vectors]
    words += [] if hours is None else ["--hours", f"{hours:g}"]
    return shlex.join(["unrolled", "reproduce", *words])


def _estimate(experiments: list[Experiment], scale: Scale, data: Path | None) -> None:
    from rich.console import Console

    from unrolled.lab.papers.framework.measured_hours import estimate

    print_table(estimate(experiments, scale, data, TrialLines(Console(stderr=True)).say))


def _write_pages(
    members: list[Experiment], store: ResultStore, figures: Path | None, write: Path | None, gallery: Path | None
) -> None:
    from unrolled.atomic_write import atomic_write
    from unrolled.lab.papers.framework.pages import gallery_page, single_page, write_pages

    if write is not None and write.suffix:
        atomic_write(write, single_page(members, store).encode())
        typer.echo(f"page: {write}")
    elif write is not None:
        typer.echo(f"page: {write_pages(members, store, write, figures or write / 'figures')}")
    if gallery is not None and figures is not None:
        atomic_write(gallery, gallery_page(members, store, gallery, figures).encode())
        typer.echo(f"page: {gallery}")
