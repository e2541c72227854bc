"""The page of an account: one HTML file that contains everything it shows, loads nothing and runs no script."""

from __future__ import annotations

import os
from collections.abc import Sequence

from unrolled.atomic_write import atomic_write
from unrolled.file_suffixes import refuse_other_format
from unrolled.report.account_view import AccountView
from unrolled.report.colour import SCALE, text_colour
from unrolled.report.page_shell import SUFFIXES, environment, policy, style
from unrolled.report.page_view import waterfall

__all__ = ["render_fragment", "render_page", "save_page"]

_NUMBERED = 40
"""Each token of a group of up to this many has its number below it."""


def render_page(views: Sequence[AccountView], target: str | None = None) -> str:
    """Return examples of an account as one self-contained HTML page; of several, each can be opened and closed.

    Args:
        views: The examples, at least one.
        target: What the heading says of all of them; by default the name of the first one's output.

    Raises:
        NonFiniteError: If the account holds NaN or infinity.
    """
    sheet = style()
    return (
        environment()
        .get_template("account.html")
        .render(
            title=f"Where “{views[0].target if target is None else target}” comes from",
            examples=[{"view": view, "bars": waterfall(view.entries, ("output", view.output))} for view in views],
            limit=max(view.limit for view in views),
            numbered=_NUMBERED,
            style=sheet,
            policy=policy(style=sheet),
        )
    )


def save_page(path: str | os.PathLike[str], views: Sequence[AccountView], target: str | None = None) -> None:
    """Write the page of :func:`render_page` to a file, whole or not at all."""
    refuse_other_format(path, *SUFFIXES)
    atomic_write(path, render_page(views, target).encode())


def render_fragment(view: AccountView) -> str:
    """Return an account as one ``<div>`` for a notebook, without script or style sheet."""
    return (
        environment()
        .get_template("account_fragment.html")
        .render(
            view=view,
            limit=view.limit,
            bars=waterfall(view.entries, ("output", view.output)),
            scale=[(c, text_colour(c)) for c in SCALE],
        )
    )
