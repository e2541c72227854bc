"""The figure of explanations and accounts: a notebook shows it, and tokens of any script have a font that has them.

The figure is made without pyplot and changes none of its global state. This module needs the extra ``figures``.
"""

from __future__ import annotations

import io
from functools import lru_cache

from matplotlib.artist import Artist
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text

__all__ = ["ShownFigure"]


class ShownFigure(Figure):
    """A figure that a notebook shows, and that takes the characters its font lacks from other installed fonts."""

    def draw(self, renderer: RendererBase) -> None:
        """Draw the figure, each text in fonts that have its characters."""
        for text in self.findobj(_is_text):
            assert isinstance(text, Text)
            missing = set(map(ord, text.get_text())) - _characters(text.get_fontproperties())
            lacking = {code for code in missing if not chr(code).isspace()}
            if lacking:
                family = text.get_fontfamily()
                found = [name for name in _families_with(frozenset(lacking)) if name not in family]
                text.set_fontfamily([*family, *found])
        super().draw(renderer)

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=110, bbox_inches="tight", pad_inches=0.1)
        return content.getvalue()


def _is_text(artist: Artist) -> bool:
    return isinstance(artist, Text)


def _characters(font: FontProperties) -> set[int]:
    return {code for name in font.get_family() for code in _code_points(findfont(FontProperties(family=[name])))}


@lru_cache(8)
def _code_points(path: str) -> frozenset[int]:
    """Return the characters that a font has; none if matplotlib cannot draw it, as most fonts of emoji."""
    try:
        font = get_font(path)
        font.set_size(9, 72)
        return frozenset(font.get_charmap())
    except (OSError, RuntimeError):
        return frozenset()


@lru_cache(64)
def _families_with(codes: frozenset[int]) -> tuple[str, ...]:
    """Name installed families that together have as many of the characters as any have, the most first."""
    faces = {entry.name: entry.fname for entry in fontManager.ttflist if entry.style == "normal"}
    having = {name: codes & _code_points(path) for name, path in sorted(faces.items())}
    found, left = [], codes
    while having:
        name = max(having, key=lambda name: len(having[name] & left))
        if not having[name] & left:
            break
        found.append(name)
        left -= having.pop(name)
    return tuple(found)
