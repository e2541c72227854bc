"""Surroundings in which a command may be started: closed streams, a terminal of a column, a home that is not there."""

from __future__ import annotations

import logging
import os
import pathlib
import sys

__all__ = ["prepare"]

NARROWEST = 40
"""Columns below which a table or a help text is not readable."""


def prepare() -> None:
    """Give a process what every command takes for granted.

    A stream that was closed (``>&-``, or a daemon's) is read and written as an empty one. Without this, the next file
    that is opened becomes the standard output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, pathlib.Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # open as long as the process
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns[:6]) < NARROWEST:
        os.environ["COLUMNS"] = str(NARROWEST)
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it says where it keeps its cache without a home
