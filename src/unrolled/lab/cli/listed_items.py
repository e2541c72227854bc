"""The items of ``unrolled reproduce``: chosen by their names, and listed with what they reproduce."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

import typer

from unrolled.cli.wrapped_line import print_wrapped
from unrolled.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from unrolled.lab.papers.framework.experiment import Experiment, Scale
    from unrolled.lab.papers.framework.result_store import ResultStore

__all__ = ["choose_items", "list_items"]

_PLACES = re.compile(r"\b(table|figure|section|appendix)s? [^;:(]*\d")
"""The tables, figures and sections in the source of an item."""


def choose_items(members: list[Experiment], wanted: list[str]) -> list[Experiment]:
    """Return the items of these names, or of papers of these names; UsageError suggests the nearest name."""
    chosen: list[Experiment] = []
    for name in wanted:
        found = [each for each in members if name in (each.name, each.paper)]
        if not found:
            raise _unknown_item(name, members)
        chosen += [each for each in found if each not in chosen]
    return chosen


def _unknown_item(name: str, members: list[Experiment]) -> UsageError:
    """Return an error that lists the items of the paper, if that is known, and names the nearest one."""
    paper, _, item = name.partition("/")
    siblings = [each for each in members if each.paper == paper]
    if not siblings:
        return UnknownNameError("item", name, [name for each in members for name in (each.name, each.paper)])
    near = difflib.get_close_matches(item, [each.name.partition("/")[2] for each in siblings], n=1)
    meant = f"did you mean {f'{paper}/{near[0]}'!r}?; " if near else ""
    return UsageError(f"unknown item {name!r}; {meant}items of {paper}: {'; '.join(_shown(siblings))}")


def _shown(members: list[Experiment]) -> list[str]:
    """Write the items of a paper with the tables and figures that they reproduce."""
    return [" ".join([each.name.partition("/")[2], *_place(each)]) for each in members]


def _place(experiment: Experiment) -> list[str]:
    """Return the tables, figures and sections of the paper, in brackets; none of a question of our own."""
    of_this_paper = experiment.source.partition(", and ")[0]
    found = None if of_this_paper.startswith("our own") else _PLACES.search(of_this_paper)
    return [f"({found[0]})"] if found else []


def list_items(members: list[Experiment], scale: Scale, store: ResultStore) -> None:
    """Print the items with their titles, and how many trials at a scale have a result."""
    from unrolled.lab.papers.framework.runner import collect

    width = max((len(each.name) for each in members), default=0)
    for each in members:
        done, total = len(collect(each, scale, store)), len(each.at(scale))
        count = f"{done:>3}/{total:<3}" if total else "  –    "
        print_wrapped(f"{each.name:<{width}}  {count}  {' '.join([each.title, *_place(each)])}")
    typer.echo()
    print_wrapped(f"behind each name: how many of its trials at scale {scale} have a result in {store.folder}")
