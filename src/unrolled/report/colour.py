"""The one colour scale: blue lifts the logit, orange-red lowers it, zero is the pale middle.

Page, figure and terminal read the same table, so a colour means the same number wherever it stands. Both arms
fall from the same pale zero to the same darkness at the same rate (in OKLab, where equal steps look equal): a
value and its negative differ in hue alone, along the blue-orange axis that colour-blind readers keep.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from unrolled.decomposition.attribution import Attribution
from unrolled.errors import NonFiniteError, UsageError

if TYPE_CHECKING:
    from matplotlib.colors import ListedColormap

__all__ = ["SCALE", "STEPS", "Quantity", "colour", "colour_map", "ink", "luminance", "shared_limit", "step"]

Quantity = Literal["score", "contribution"]

STEPS = 64
"""Steps on each side of zero; ``SCALE[STEPS]`` is zero itself."""

_DARK, _LIGHT = "#1b1d21", "#ffffff"
# A limit is rounded up to one of these, times a power of ten, so that a legend ends in a number one can read.
_ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def _srgb(lightness: float, chroma: float, hue: float) -> str:
    """Write an OKLCH colour as ``#rrggbb`` (Ottosson 2020, https://bottosson.github.io/posts/oklab/)."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    channels = (12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in linear)
    return "#" + "".join(f"{round(255 * min(max(c, 0.0), 1.0)):02x}" for c in channels)


def _arm(size: float, positive: bool) -> str:
    """Give the colour at ``size`` in [0, 1] along one arm: darker and stronger as it grows."""
    hue = 232 + 26 * size if positive else 62 - 27 * size
    return _srgb(lightness=0.972 - 0.50 * size, chroma=0.150 * size**0.85, hue=hue)


SCALE: tuple[str, ...] = (
    *(_arm(k / STEPS, positive=False) for k in range(STEPS, 0, -1)),
    *(_arm(k / STEPS, positive=True) for k in range(STEPS + 1)),
)
"""The colours from -limit to +limit, ``#rrggbb``; 2 * STEPS + 1 of them."""


def step(value: float, limit: float) -> int:
    """Place a value on the scale; beyond the limit it takes the end.

    Args:
        value: any finite number.
        limit: the value at the positive end; zero when everything shown is zero.

    Returns:
        An index into :data:`SCALE`; ``STEPS`` for zero.

    Raises:
        NonFiniteError: when the value is NaN or infinite.
        UsageError: when the limit is negative, NaN or infinite.
    """
    if not math.isfinite(limit) or limit < 0:
        raise UsageError(f"colour limit is {limit}; expected a finite number, 0 or more")
    if not math.isfinite(value):
        raise NonFiniteError(f"cannot colour the value {value}; expected a finite number")
    if limit == 0:
        return STEPS
    return STEPS + round(STEPS * min(max(value / limit, -1.0), 1.0))


def colour(value: float, limit: float) -> str:
    """Give the colour of a value.

    Args:
        value: any finite number.
        limit: the value at the positive end of the scale.

    Returns:
        ``#rrggbb``.
    """
    return SCALE[step(value, limit)]


def colour_map() -> ListedColormap:
    """Give the scale as matplotlib has it; its ends are to be a limit and its negative.

    Returns:
        A map of 2 * STEPS + 1 colours.
    """
    from matplotlib.colors import ListedColormap

    return ListedColormap(SCALE, name="unrolled")


def luminance(hexadecimal: str) -> float:
    """Give the relative luminance of ``#rrggbb``, as WCAG 2 defines it.

    Args:
        hexadecimal: the colour.

    Returns:
        From 0, black, to 1, white.
    """
    channels = [int(hexadecimal[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ink(background: str) -> str:
    """Choose dark or light text for a background: whichever contrasts more.

    Args:
        background: ``#rrggbb``.

    Returns:
        The text's colour, ``#rrggbb``.
    """
    ground = luminance(background) + 0.05
    on_dark = ground / (luminance(_DARK) + 0.05)
    on_light = (luminance(_LIGHT) + 0.05) / ground
    return _DARK if on_dark >= on_light else _LIGHT


def _shown(account: Attribution, quantity: Quantity) -> list[Tensor]:
    if quantity == "score":
        return [account.triangle.scores, account.token_scores]
    return [account.triangle.contributions]


def shared_limit(accounts: Sequence[Attribution], quantity: Quantity = "score") -> float:
    """Find the one limit for accounts that are shown side by side.

    It is set by the exact expansions among them: an inexact one can be off by any factor, and would bleach
    all the others. Scores and token totals share a limit; contributions of single n-grams have their own,
    since a model that averages over T positions makes them T times smaller.

    Args:
        accounts: what is shown together.
        quantity: ``"score"`` or ``"contribution"``.

    Returns:
        The largest absolute value, rounded up to a number that reads well; 0 when all values are zero.

    Raises:
        NonFiniteError: when an account holds NaN or infinity.
        UsageError: when there are no accounts.
    """
    if not accounts:
        raise UsageError("no account to show; expected at least one")
    for account in accounts:
        if not all(bool(torch.isfinite(t).all()) for t in _shown(account, quantity)):
            raise NonFiniteError(f"the account by {account.expansion!r} holds NaN or infinity; expected numbers")
    setting = [a for a in accounts if a.exact] or list(accounts)
    largest = max((float(t.abs().max()) for a in setting for t in _shown(a, quantity) if t.numel()), default=0.0)
    if largest == 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(largest))
    return next((power * m for m in _ROUND if power * m >= largest), 10 * power)
