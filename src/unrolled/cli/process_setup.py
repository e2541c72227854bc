"""Set up the process of a command that was started with closed streams, in a narrow terminal or without a home."""

from __future__ import annotations

import logging
import os
import pathlib
import sys
import warnings

__all__ = ["prepare_process"]

_NARROWEST = 40
"""Columns below which a table or a help text is not readable."""


def prepare_process() -> None:
    """Open closed streams, set a readable width, and silence what libraries say of their own matters.

    A stream that was closed (``>&-``, or a daemon's) is read and written as an empty one. Without this, the next file
    that is opened becomes the standard output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, pathlib.Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # open as long as the process
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns[:6]) < _NARROWEST:
        os.environ["COLUMNS"] = str(_NARROWEST)
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it says where it keeps its cache without a home
    # torch, of an LSTM with a projection: the results are the same
    warnings.filterwarnings("ignore", "LSTM with projections is not supported with oneDNN", UserWarning)
