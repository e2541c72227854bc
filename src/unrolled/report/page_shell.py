"""What all HTML pages share: the templates, the style sheet with the colour scale, and the security policy.

Tokens are untrusted text. Templates escape them, and the content security policy allows only the scripts and the style
sheet of this package, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from unrolled.report.colour import DARK_SCALE, SCALE, STEPS, scale_index, text_colour
from unrolled.report.formatting import clip, magnitude, minus, share_of, signed, visible
from unrolled.report.page_view import sum_of_ngrams
from unrolled.report.spans import Phrase

__all__ = ["SUFFIXES", "environment", "policy", "script", "style", "trusted"]

SUFFIXES = (".html", ".htm")
"""Of a page's file, the usual one first."""
_SCRIPTS = ("page_dom.js", "page_triangle.js", "page_series.js", "page.js", "page_list.js")


def _phrase(phrase: Phrase) -> str:
    """Format a phrase for a table."""
    return clip(phrase.text, 120)


@cache
def environment() -> Environment:
    """Return the environment of all templates, with the filters that format numbers and tokens."""
    made = Environment(
        loader=PackageLoader("unrolled", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        visible=visible,
        clip=clip,
        phrase=_phrase,
        signed=lambda value: minus(signed(value)),
        magnitude=lambda value: minus(magnitude(value)),
        share_of=lambda share, whole: minus(share_of(share, whole)),
        end=lambda limit: minus(f"{limit:+g}") if limit else "0",
        scale_index=scale_index,
        sum_of_ngrams=sum_of_ngrams,
    )
    return made


@cache
def style() -> Markup:
    """Join the style sheet and the colour scales, one class for each step, so that no element needs its own style."""
    light, dark = _steps(SCALE), _steps(DARK_SCALE)
    return trusted(f"{_shipped('page.css')}\n{light}\n@media screen and (prefers-color-scheme: dark) {{{dark}}}")


def _steps(scale: Sequence[str]) -> str:
    steps = "".join(f".s{k}{{--c:{c};--i:{text_colour(c)}}}" for k, c in enumerate(scale))
    return f".ramp{{background:linear-gradient(90deg,{','.join(scale[:: STEPS // 8])})}}{steps}"


@cache
def script() -> Markup:
    """Join the scripts of a page to one, whose names nothing else can see."""
    return trusted('"use strict";\n(() => {\n' + "\n".join(_shipped(name) for name in _SCRIPTS) + "})();\n")


def _shipped(name: str) -> str:
    """Read a file of this package."""
    return resources.files("unrolled.report").joinpath(name).read_text(encoding="utf-8")


def trusted(text: str) -> Markup:
    """Mark text of this package as needing no escape; never use it for a user's text."""
    return Markup(text)  # noqa: S704  # our own script and style


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def policy(*, style: str, script: str | None = None) -> str:
    """Return the content security policy of a page with one style sheet and at most one script."""
    scripts = f"script-src {_hash(script)}; " if script is not None else ""
    return f"default-src 'none'; style-src {_hash(style)}; {scripts}base-uri 'none'; form-action 'none'"
