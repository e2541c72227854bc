"""The colour scale of page, figure and terminal: blue raises the logit, orange lowers it, zero is pale.

Both arms start from the same pale zero and darken equally fast in OKLab, where equal steps look equal. A value and its
negative differ only in hue, along the blue-orange axis that most colour-blind readers can tell apart. On a dark page
zero is dark and the arms lighten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.errors import NonFiniteError, UsageError
from unrolled.report.spans import Quantity, values_of

if TYPE_CHECKING:
    from matplotlib.colors import ListedColormap

__all__ = [
    "DARK_SCALE",
    "SCALE",
    "STEPS",
    "colour",
    "colour_map",
    "limit_of",
    "luminance",
    "rounded_limit",
    "scale_index",
    "shared_limit",
    "text_colour",
]

STEPS = 64
"""Steps on each side of zero; ``SCALE[STEPS]`` is zero."""

_DARK, _LIGHT = "#000000", "#ffffff"
# A limit is rounded up to one of these times a power of ten, so that a legend ends in a short number.
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


def _arm(size: float, positive: bool, dark: bool) -> str:
    """Return the colour at ``size`` in [0, 1] of one arm."""
    hue = 232 + 26 * size if positive else 62 - 27 * size
    lightness = 0.265 + 0.455 * size if dark else 0.972 - 0.50 * size
    return _srgb(lightness, chroma=0.150 * size**0.85, hue=hue)


def _scale(dark: bool) -> tuple[str, ...]:
    negative = (_arm(k / STEPS, positive=False, dark=dark) for k in range(STEPS, 0, -1))
    return (*negative, *(_arm(k / STEPS, positive=True, dark=dark) for k in range(STEPS + 1)))


SCALE = _scale(dark=False)
"""The colours from -limit to +limit, ``#rrggbb``; 2 * STEPS + 1 of them."""

DARK_SCALE = _scale(dark=True)
"""The same for a dark page."""


def scale_index(value: float, limit: float) -> int:
    """Return the index of a value in :data:`SCALE`; values beyond the limit take the end of the scale."""
    if not math.isfinite(limit) or limit < 0:
        raise UsageError(f"colour limit is {limit}; expected a finite number, 0 or more")
    if not math.isfinite(value):
        raise NonFiniteError(f"cannot colour the value {value}; expected a finite number")
    if limit == 0:
        return STEPS
    return STEPS + round(STEPS * min(max(value / limit, -1.0), 1.0))


def colour(value: float, limit: float) -> str:
    """Return the colour ``#rrggbb`` of a value on a scale that ends at ``limit``."""
    return SCALE[scale_index(value, limit)]


def colour_map() -> ListedColormap:
    """Return the scale as a matplotlib colour map, for values from -limit to limit."""
    from matplotlib.colors import ListedColormap

    return ListedColormap(SCALE, name="unrolled")


def luminance(hexadecimal: str) -> float:
    """Return the relative luminance of ``#rrggbb`` by WCAG 2, from 0 (black) to 1 (white)."""
    channels = [int(hexadecimal[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def text_colour(background: str) -> str:
    """Return dark or light text for a background, whichever has more contrast."""
    ground = luminance(background) + 0.05
    on_dark = ground / (luminance(_DARK) + 0.05)
    on_light = (luminance(_LIGHT) + 0.05) / ground
    return _DARK if on_dark >= on_light else _LIGHT


def _shown(attribution: Attribution, quantity: Quantity | Literal["token"]) -> Tensor:
    return attribution.token_scores if quantity == "token" else values_of(attribution, quantity)


def shared_limit(attributions: Sequence[Attribution], quantity: Quantity | Literal["token"] = "phrase") -> float:
    """Return the largest absolute value of attributions that are shown side by side, rounded up; 0 if all are zero.

    Exact expansions set the limit: an inexact one can be off by any factor, and all others would look pale. Phrases,
    n-grams, contributions and tokens each have their own: a model that averages over T positions makes contributions T
    times smaller than scores.
    """
    if not attributions:
        raise UsageError("no explanation to show; expected at least one")
    for attribution in attributions:
        if not bool(torch.isfinite(_shown(attribution, quantity)).all()):
            raise NonFiniteError(
                f"the explanation by {attribution.expansion!r} holds NaN or infinity; expected numbers"
            )
    setting = [a for a in attributions if a.exact] or list(attributions)
    return max(limit_of(_shown(a, quantity)) for a in setting)


def limit_of(values: Tensor) -> float:
    """Return the largest absolute value, rounded up; 0 if there is none."""
    return rounded_limit(float(values.abs().max())) if values.numel() else 0.0


def rounded_limit(largest: float) -> float:
    """Round the end of a scale up to a short number; 0 stays 0."""
    if largest == 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(largest))
    found = next((m for m in _ROUND if power * m >= largest), 10.0)
    return float(f"{power * found:.2g}")  # without the digits that a product of decimals leaves
