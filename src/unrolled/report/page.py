"""The page: one HTML file that holds everything it shows and asks the network for nothing.

Tokens are hostile text. The template escapes them, the data block is JSON in which no ``<`` survives, and the
content security policy lets run the one script and the one style sheet that were shipped, by their hashes.
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
from unrolled.report.colour import SCALE, STEPS, ink, shared_limit, step
from unrolled.report.formatting import clip, minus, signed, size, visible
from unrolled.report.page_view import labels, longest_shown, payload, waterfall

__all__ = ["render_fragment", "render_page", "save_page"]

_TOP = 12
_TOP_FRAGMENT = 5


def _phrase(ngram: NGram) -> str:
    """Write an n-gram short enough for a table."""
    return clip(visible(ngram.text), 120)


def _largest(account: Attribution, count: int) -> list[NGram]:
    """List the n-grams that contributed most, without those that the model never reads."""
    return [ngram for ngram in account.top(count) if ngram.contribution != 0]


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
        size=lambda value: minus(size(value)),
        end=lambda limit: minus(f"{limit:+g}") if limit else "0",
        step=step,
    )
    return environment


@cache
def _style() -> Markup:
    """Join the style sheet and the scale: one class a step, so that no element needs a style of its own."""
    scale = "".join(f".s{k}{{--c:{c};--i:{ink(c)}}}" for k, c in enumerate(SCALE))
    ramp = ",".join(SCALE[:: STEPS // 8])
    return _trusted(f"{_shipped('page.css')}\n.ramp{{background:linear-gradient(90deg,{ramp})}}\n{scale}")


@cache
def _script() -> Markup:
    return _trusted(_shipped("page.js"))


def _shipped(name: str) -> str:
    return resources.files("unrolled.report").joinpath(name).read_text(encoding="utf-8")


def _trusted(text: str) -> Markup:
    """Mark text of our own, never a user's, as needing no escape."""
    return Markup(text)  # noqa: S704  # our own script and style


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _json(data: object) -> Markup:
    """Write JSON that cannot end the element it stands in: <, >, & and all beyond ASCII by number."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return _trusted(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def render_page(accounts: Sequence[Attribution], title: str | None = None) -> str:
    """Draw accounts of one output, by different expansions, as one self-contained HTML page.

    The triangle holds at most :data:`~unrolled.report.page_view.CELLS` cells: of more than 109 tokens, only
    its shorter n-grams, and the page says up to which length. The ledger always counts all of them.

    Args:
        accounts: the first is shown first, and all share one colour scale.
        title: the page's heading; the target's name when left out.

    Returns:
        The page.

    Raises:
        UsageError: when there is no account, or one of an empty sentence.
        NonFiniteError: when an account holds NaN or infinity.
    """
    if not accounts:
        raise UsageError("no account to show; expected at least one")
    limits = {
        "score": shared_limit(accounts, "score"),
        "contribution": shared_limit(accounts, "contribution"),
    }
    named = list(zip(labels(accounts), accounts, strict=True))
    data = {"steps": STEPS, "limits": limits, "panels": [payload(account, label) for label, account in named]}
    style, script = _style(), _script()
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title if title is not None else f"Where “{accounts[0].target}” comes from",
            panels=[
                {
                    "label": label,
                    "account": account,
                    "bars": waterfall(account.ledger),
                    "top": _largest(account, _TOP),
                    "longest": longest_shown(account),
                }
                for label, account in named
            ],
            limits=limits,
            data=_json(data),
            style=style,
            script=script,
            policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
            "base-uri 'none'; form-action 'none'",
        )
    )


def save_page(path: str | os.PathLike[str], accounts: Sequence[Attribution], title: str | None = None) -> None:
    """Write the page of :func:`render_page` to a file, whole or not at all.

    Args:
        path: the HTML file.
        accounts: the first is shown first.
        title: the page's heading.

    Raises:
        UsageError: when there is no account, or one of an empty sentence.
        NonFiniteError: when an account holds NaN or infinity.
        FileError: when the path cannot be written.
    """
    atomic_write(path, render_page(accounts, title).encode())


def render_fragment(account: Attribution) -> str:
    """Draw an account as a piece of HTML for a notebook: static, escaped, without script or style sheet.

    Args:
        account: what is shown.

    Returns:
        One ``<div>``.

    Raises:
        NonFiniteError: when the account holds NaN or infinity.
    """
    limit = shared_limit([account])
    return (
        _environment()
        .get_template("fragment.html")
        .render(
            account=account,
            limit=limit,
            top=_largest(account, _TOP_FRAGMENT),
            bars=waterfall(account.ledger),
            scale=[(c, ink(c)) for c in SCALE],
        )
    )
