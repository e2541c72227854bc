"""The report page: one HTML file that contains everything it shows and loads nothing.

Tokens are untrusted text. The template escapes them, the JSON data contains no ``<``, and the content security policy
allows only the script and the style sheet of this package, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from unrolled.atomic_write import atomic_write
from unrolled.decomposition.attribution import Attribution, NGram
from unrolled.errors import UsageError
from unrolled.report.colour import SCALE, STEPS, scale_index, shared_limit, text_colour
from unrolled.report.formatting import clip, magnitude, minus, signed, visible
from unrolled.report.page_view import longest_shown, panel_data, panel_labels, sum_of_ngrams, waterfall

__all__ = ["render_fragment", "render_page", "save_page"]

_TOP = 12
_TOP_FRAGMENT = 5


def _phrase(ngram: NGram) -> str:
    """Format an n-gram for a table."""
    return clip(visible(ngram.text), 120)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("unrolled", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        visible=visible,
        clip=clip,
        phrase=_phrase,
        signed=lambda value: minus(signed(value)),
        magnitude=lambda value: minus(magnitude(value)),
        end=lambda limit: minus(f"{limit:+g}") if limit else "0",
        scale_index=scale_index,
        sum_of_ngrams=sum_of_ngrams,
    )
    return environment


@cache
def _style() -> Markup:
    """Join the style sheet and the colour scale, one class for each step, so that no element needs its own style."""
    scale = "".join(f".s{k}{{--c:{c};--i:{text_colour(c)}}}" for k, c in enumerate(SCALE))
    ramp = ",".join(SCALE[:: STEPS // 8])
    return _trusted(f"{_shipped('page.css')}\n.ramp{{background:linear-gradient(90deg,{ramp})}}\n{scale}")


@cache
def _script() -> Markup:
    return _trusted(_shipped("page.js"))


def _shipped(name: str) -> str:
    return resources.files("unrolled.report").joinpath(name).read_text(encoding="utf-8")


def _trusted(text: str) -> Markup:
    """Mark text of this package as needing no escape; never use it for a user's text."""
    return Markup(text)  # noqa: S704  # our own script and style


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _json(data: object) -> Markup:
    """Return JSON that cannot end the element around it: <, >, & and all non-ASCII as escapes."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return _trusted(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


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
    style, script = _style(), _script()
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title if title is not None else f"Where “{attributions[0].target}” comes from",
            panels=[
                {
                    "label": label,
                    "attribution": attribution,
                    "bars": waterfall(attribution.ledger),
                    "top": attribution.top(_TOP),
                    "longest": longest_shown(attribution),
                }
                for label, attribution in named
            ],
            limits=limits,
            data=_json(data),
            style=style,
            script=script,
            policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
            "base-uri 'none'; form-action 'none'",
        )
    )


def save_page(path: str | os.PathLike[str], attributions: Sequence[Attribution], title: str | None = None) -> None:
    """Write the page of :func:`render_page` to a file, whole or not at all."""
    atomic_write(path, render_page(attributions, title).encode())


def render_fragment(attribution: Attribution) -> str:
    """Return an attribution as one ``<div>`` for a notebook, without script or style sheet."""
    limit = shared_limit([attribution])
    return (
        _environment()
        .get_template("fragment.html")
        .render(
            attribution=attribution,
            limit=limit,
            top=attribution.top(_TOP_FRAGMENT),
            bars=waterfall(attribution.ledger),
            scale=[(c, text_colour(c)) for c in SCALE],
        )
    )
