"""Accounts small enough to check by hand, from a scalar recurrence whose n-grams are known in closed form."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from banded import banded
from page_in_browser import CHROMIUM, Document
from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.decomposition.attribution.ledger import Ledger
from unrolled.decomposition.attribution.triangle import Triangle

HOSTILE = {
    "script": "<script>document.title='owned'</script>",
    "end of script": "</script><img src=x onerror=\"document.title='owned'\">",
    "end of style": "</style></title><svg onload=alert(1)>",
    "comment": "<!--",
    "quotes": "\"' onmouseover='alert(1)",
    "entity": "&lt;b&gt;",
    "template": "{{ 7 * 7 }}{% raw %}",
    "line separator": "a\u2028b\u2029c",
    "bidi": "\u202etxt.exe\u2066",
    "zero": "a\x00b",
    "ansi": "\x1b[31mred\x1b[2J\x9b1A",
    "newline": "a\nb\r\tc",
    "surrogate": "\ud800",
    "markup": "[red]x[/red][/]",
    "mathtext": "$\\frac{a$ \\alpha_b",
    "empty": "",
    "blank": "  ",
    "joiner": "\u200d",
    "long": "x" * 5000,
}

Build = Callable[..., Attribution]


def _build(
    tokens: Sequence[str] = ("not", "a", "bad", "film"),
    *,
    expansion: str = "path",
    exact: bool = True,
    bidirectional: bool = False,
    mean: bool = False,
    scale: float = 1.0,
    **fields: object,
) -> Attribution:
    """Read s_t = g_t + a_t s_{t-1} in each direction, at its last state or at the mean of all."""
    time = len(tokens)
    put_in = torch.tensor([(-1.5, 0.25, 0.75, -0.5)[k % 4] * scale for k in range(time)], dtype=torch.float64)
    carry = torch.tensor([(0.5, -0.75)[k % 2] for k in range(time)], dtype=torch.float64)
    forward = torch.zeros(time, time, dtype=torch.float64)
    for read in range(time):
        forward[read, :read] = forward[read - 1, :read] * carry[read]
        forward[read, read] = put_in[read]
    scores = torch.stack([forward, 0.5 * forward.T] if bidirectional else [forward])
    contributions = torch.zeros_like(scores)
    if mean:
        contributions = scores / time
    elif time:
        contributions[0, -1] = scores[0, -1]
        if bidirectional:
            contributions[1, 0] = scores[1, 0]
    ngrams, initial, bias, remainder = float(contributions.sum()), 0.0625, 0.21875, -0.001953125
    whole = {
        "tokens": tuple(tokens),
        "directions": ("forward", "backward")[: len(scores)],
        "triangle": Triangle(banded(scores), banded(contributions)),
        "ledger": Ledger(ngrams, initial, bias, remainder, ngrams + initial + bias + remainder),
        "target": "class 1",
        "expansion": expansion,
        "exact": exact,
        "local": not exact,
        "residual": 4e-16 if exact else 1.75,
        "parity": 2.5e-7,
        "rounding": 2**-10,  # half precision: the remainder is rounding
    }
    return Attribution(**(whole | fields))


@pytest.fixture
def build() -> Build:
    return _build


@pytest.fixture(params=HOSTILE.values(), ids=HOSTILE.keys())
def hostile(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def all_hostile() -> list[str]:
    return list(HOSTILE.values())


@pytest.fixture
def chromium(tmp_path: Path):
    def run(html: str, fragment: str, *options: str) -> bytes:
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        arguments = (
            "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync --hide-scrollbars "
            "--disable-background-networking --disable-component-update --virtual-time-budget=2000"
        )
        done = subprocess.run(
            [
                CHROMIUM,
                *arguments.split(),
                *(options or ("--window-size=1200,1600", "--dump-dom")),
                f"--user-data-dir={tmp_path / 'profile'}",
                f"{path.as_uri()}{fragment}",
            ],
            capture_output=True,
            check=True,
            timeout=120,
        )
        return done.stdout

    return run


@pytest.fixture
def browse(chromium):
    return lambda html, fragment="": Document(chromium(html, fragment).decode())
