"""Numbers over time in a terminal: each feature's series, and below it what it contributed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import Style
from rich.text import Text
from torch import Tensor

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.report.colour import colour, limit_of, text_colour
from unrolled.report.feature_rows import FeatureRow, feature_rows
from unrolled.report.formatting import clip, signed, visible

__all__ = ["Series"]

_BARS = "▁▂▃▄▅▆▇█"
_FAINT = Style(dim=True)
_NAME, _NUMBER = 20, 10
"""Cells of the names and of the numbers to the left of the series."""
_WHOLE = "the whole step"


@dataclass(frozen=True)
class Series:
    """The features of an attribution, with time from left to right; many steps share cells."""

    attribution: Attribution

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        attribution = self.attribution
        assert attribution.features is not None
        rows = feature_rows(attribution.features)
        name = min(_NAME, max(cell_len(each) for each in (_WHOLE, *(visible(row.name) for row in rows))))
        each = -(-len(attribution) // max(1, options.max_width - name - _NUMBER - 2))
        strips = torch.stack([_sums(row.scores, each) for row in rows])
        whole = strips.sum(dim=0)
        limit = max(limit_of(strips), limit_of(whole))
        shared = f", {each} steps a cell" if each > 1 else ""
        yield Text(f"contributions of numbers over time{shared}; bars show the numbers that were read", style=_FAINT)
        yield Text(f"▲ ▼ above {limit / 2:g}, + - above {limit / 10:g}, · below", style=_FAINT)
        for row, strip in zip(rows, strips, strict=True):
            if row.values is not None:
                yield Text(" " * (name + _NUMBER + 2)).append(_bars(row, each))
            yield _strip(row.name, strip, limit, name)
        yield _strip(_WHOLE, whole, limit, name)
        yield Text(" " * (name + _NUMBER + 2) + self._axis(strips.shape[1]), style=_FAINT)
        yield self._largest(rows)

    def _largest(self, rows: list[FeatureRow]) -> Text:
        """Name the step of the largest contribution."""
        scores = torch.stack([row.scores for row in rows])
        row, step = divmod(int(scores.abs().argmax()), scores.shape[1])
        place = clip(visible(self.attribution.tokens[step]), 30)
        return Text(
            f"largest: {clip(visible(rows[row].name), 30)} at {place}, {signed(float(scores[row, step]))}", _FAINT
        )

    def _axis(self, width: int) -> str:
        """Name the first and the last step."""
        first, last = visible(self.attribution.tokens[0]), visible(self.attribution.tokens[-1])
        gap = width - cell_len(first) - cell_len(last)
        return (
            first + " " * gap + last if gap > 0 and len(self.attribution) > 1 else set_cell_size(first, width).rstrip()
        )


def _sums(values: Tensor, each: int) -> Tensor:
    """Sum the values of the steps that share a cell."""
    return torch.stack([part.double().sum() for part in values.split(each)])


def _bars(row: FeatureRow, each: int) -> str:
    """Draw a series as bars from its lowest number to its highest; each cell shows the mean of what is read there."""
    assert row.values is not None
    return "".join(_bar(float(part.double().nanmean()), row.ends) for part in row.values.split(each))


def _bar(mean: float, ends: tuple[float, float] | None) -> str:
    if ends is None or math.isnan(mean):
        return " "
    low, high = ends
    top = len(_BARS) - 1
    return _BARS[round(top * (mean - low) / (high - low)) if high > low else top // 2]


def _strip(name: str, scores: Tensor, limit: float, width: int) -> Text:
    """Draw contributions as coloured cells, behind their name and their sum."""
    shown = visible(name)
    if cell_len(shown) > width:
        shown = set_cell_size(shown, width - 1) + "…"
    line = Text(set_cell_size(shown, width)).append(f" {signed(float(scores.sum())):>{_NUMBER}} ", _FAINT)
    for value in scores.tolist():
        ground = colour(value, limit)
        line.append(_mark(value, limit), Style(color=text_colour(ground), bgcolor=ground))
    return line


def _mark(value: float, limit: float) -> str:
    if abs(value) <= 0.1 * limit:
        return "·"
    if abs(value) <= 0.5 * limit:
        return "+" if value > 0 else "-"
    return "▲" if value > 0 else "▼"
