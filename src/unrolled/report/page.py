"""The page of an explanation: one HTML file that contains everything it shows and loads nothing.

Its JSON data contains no ``<``, so that no token can end the element around it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from markupsafe import Markup

from unrolled.atomic_write import atomic_write
from unrolled.decomposition.attribution import Attribution
from unrolled.errors import UsageError
from unrolled.report.colour import SCALE, STEPS, shared_limit, text_colour
from unrolled.report.page_shell import environment, policy, shipped, style, trusted
from unrolled.report.page_view import longest_shown, panel_data, panel_labels, waterfall_of_ledger

__all__ = ["render_fragment", "render_page", "save_page"]

_TOP = 12
_TOP_FRAGMENT = 5


def _json(data: object) -> Markup:
    """Return JSON that cannot end the element around it: <, >, & and all non-ASCII as escapes."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return trusted(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def render_page(attributions: Sequence[Attribution], title: str | None = None) -> str:
    """Return attributions of one output, by different expansions, as one self-contained HTML page.

    The triangle holds at most :data:`~unrolled.report.page_view.CELLS` cells: for more than 109 tokens the page leaves
    out longer n-grams and says so. The ledger always counts all of them.

    Args:
        attributions: The first is shown first. All share one colour scale.
        title: The page's heading; by default it contains the target's name.

    Raises:
        UsageError: If there is no attribution, or a sentence is empty.
        NonFiniteError: If an attribution holds NaN or infinity.
    """
    if not attributions:
        raise UsageError("no explanation to show; expected at least one")
    limits = {
        "score": shared_limit(attributions, "score"),
        "contribution": shared_limit(attributions, "contribution"),
    }
    named = list(zip(panel_labels(attributions), attributions, strict=True))
    data = {
        "steps": STEPS,
        "limits": limits,
        "panels": [panel_data(attribution, label) for label, attribution in named],
    }
    sheet, script = style(), trusted(shipped("page.js"))
    return (
        environment()
        .get_template("page.html")
        .render(
            title=title if title is not None else f"Where “{attributions[0].target}” comes from",
            panels=[
                {
                    "label": label,
                    "attribution": attribution,
                    "bars": waterfall_of_ledger(attribution.ledger),
                    "top": attribution.top(_TOP),
                    "longest": longest_shown(attribution),
                }
                for label, attribution in named
            ],
            limits=limits,
            data=_json(data),
            style=sheet,
            script=script,
            policy=policy(style=sheet, script=script),
        )
    )


def save_page(path: str | os.PathLike[str], attributions: Sequence[Attribution], title: str | None = None) -> None:
    """Write the page of :func:`render_page` to a file, whole or not at all."""
    atomic_write(path, render_page(attributions, title).encode())


def render_fragment(attribution: Attribution) -> str:
    """Return an attribution as one ``<div>`` for a notebook, without script or style sheet."""
    limit = shared_limit([attribution])
    return (
        environment()
        .get_template("fragment.html")
        .render(
            attribution=attribution,
            limit=limit,
            top=attribution.top(_TOP_FRAGMENT),
            bars=waterfall_of_ledger(attribution.ledger),
            scale=[(c, text_colour(c)) for c in SCALE],
        )
    )
