"""One style for all figures of experiments.

The colours are those of Okabe and Ito, which people with any common colour blindness can distinguish; lines differ in
their markers too. Figures are made without pyplot, so no global state is read or changed.

Source:
    Okabe and Ito (2008), Color Universal Design.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from unrolled.atomic_write import atomic_write
from unrolled.errors import FileError, UsageError
from unrolled.report.formatting import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unrolled.lab.papers.framework.experiment import Result

__all__ = [
    "COLOURS",
    "MARKERS",
    "draw_box_pairs",
    "draw_boxes",
    "from_to",
    "grid",
    "legend_below",
    "save",
    "seed_captions",
    "write_count",
    "write_seeds",
]


_PANEL = "panel"
"""Marks the panels of :func:`grid` among the axes of a figure, which has scales as well."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_STYLE: Any = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "font.size": 9,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.markersize": 4,
    "svg.fonttype": "none",
    "svg.hashsalt": "unrolled",
}


_WIDEST = 40
"""Characters below a panel in one line."""
_COUNTS: WeakKeyDictionary[Axes, str] = WeakKeyDictionary()
"""How many values the boxes or lines of a panel stand for."""


def grid(rows: int = 1, columns: int = 1, width: float = 4.2, height: float = 3.0) -> tuple[Figure, list[Axes]]:
    """Make an empty figure of panels, which :func:`save` draws in the common style.

    Args:
        rows: Number of rows of panels.
        columns: Number of columns of panels.
        width: Width of a panel in inches.
        height: Height of a panel in inches.

    Returns:
        The figure and its panels, row by row.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)  # without one, each text that is measured makes another
    panels = figure.subplots(rows, columns, squeeze=False)
    for panel in panels.flat:
        panel.set_gid(_PANEL)
    return figure, list(panels.flat)


def _write_letters(figure: Figure) -> None:
    """Write a letter before the title of every panel, where there are several."""
    panels = [axes for axes in figure.axes if axes.get_gid() == _PANEL and axes.get_visible() and axes.axison]
    for letter, panel in zip("abcdefghijklmnopqrstuvwxyz", panels if len(panels) > 1 else (), strict=False):
        title = panel.get_title(loc="left")
        panel.set_title(rf"$\bf{{{letter}}}$" + (f"  {title}" if title else ""), loc="left")


def legend_below(figure: Figure, panel: Axes, columns: int) -> None:
    """Draw one legend for all panels below them; ``panel`` must hold every line."""
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def save(draw: Callable[[], Figure], folder: Path, name: str, *, svg: bool = False) -> list[Path]:
    """Draw a figure in the common style and write it as PNG, and as SVG if asked.

    Args:
        draw: Makes the figure with :func:`grid` and draws on it.
        folder: Folder of the files; it is made if it does not exist.
        name: Name of the files, without a suffix.
        svg: Whether to write an SVG too.

    Returns:
        The paths, the PNG first.

    Raises:
        FileError: If a file cannot be written.
        UsageError: If matplotlib is missing.
    """
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise UsageError('figures need matplotlib; install it with: pip install "unrolled[figures]"') from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder}: {error.strerror or error}") from None
    formats: dict[str, dict[str, Any]] = {"png": {"dpi": 200}, **({"svg": {"metadata": {"Date": None}}} if svg else {})}
    with rc_context(_STYLE):  # while it is drawn: matplotlib reads its settings whenever something is added
        figure = draw()
        _write_letters(figure)
        for panel in figure.axes:  # after the figure has written its own labels
            if panel in _COUNTS:
                parts = [part for part in (panel.get_xlabel(), _COUNTS[panel]) if part]
                panel.set_xlabel((", " if sum(map(len, parts)) <= _WIDEST else "\n").join(parts))
        for suffix, options in formats.items():
            content = io.BytesIO()
            figure.savefig(content, format=suffix, **options)
            figure.set_layout_engine("none")  # all formats have the places that were found for the first
            atomic_write(folder / f"{name}.{suffix}", content.getvalue())
    return [folder / f"{name}.{suffix}" for suffix in formats]


def draw_boxes(panel: Axes, groups: Mapping[str, Sequence[float]], looks: Sequence[tuple[str, float]]) -> None:
    """Draw a box for each group under its name, with a colour and an opacity for each."""
    drawn = panel.boxplot(
        list(groups.values()),
        tick_labels=list(groups),
        patch_artist=True,
        widths=0.6,
        medianprops={"color": "black"},
        flierprops={"marker": "o", "markersize": 2, "markeredgecolor": "#888888"},
    )
    for box, (colour, opacity) in zip(drawn["boxes"], looks, strict=True):
        box.set(facecolor=colour, alpha=opacity)
    panel.axhline(0, color="#888888", linestyle="--", linewidth=1)
    _write_sizes(panel, groups.values())


def draw_box_pairs(panel: Axes, pair: Sequence[Mapping[int, Sequence[float]]]) -> list[Any]:
    """Draw two boxes side by side at each place; return a box of each kind for a legend, None where there is none."""
    handles = []
    for number, groups in enumerate(pair):
        colour = COLOURS[number]
        drawn = panel.boxplot(
            list(groups.values()),
            positions=[place + 0.36 * number - 0.18 for place in groups],
            widths=0.3,
            patch_artist=True,
            boxprops={"facecolor": colour, "alpha": 0.35, "edgecolor": colour, "hatch": ("", "///")[number]},
            medianprops={"color": "black"},
            flierprops={"markersize": 2, "markeredgecolor": colour},
        )
        handles.append((drawn["boxes"] or [None])[0])
    panel.axhline(0, color="#888888", linewidth=1)
    _write_sizes(panel, [values for groups in pair for values in groups.values()])
    return handles


def seed_captions(figures: Iterable[str], what: str, results: Sequence[Result]) -> dict[str, str]:
    """Make the caption of figures that show one result, the first: it says whose boxes, maps or scores they are.

    ``what`` is that word. Without results there are no captions.
    """
    return dict.fromkeys(figures, f"the {what} are those of seed {results[0].trial.seed}.") if results else {}


def write_seeds(panels: Sequence[Axes], results: Sequence[Result], of: str = "") -> None:
    """Write below the panels of lines how many seeds they stand for; ``of`` says what else a point averages."""
    seeds = len({result.trial.seed for result in results})
    for panel in panels:
        if panel.lines:
            write_count(panel, f"{counted(seeds, 'seed')}{of and f' of {of}'}")


def write_count(panel: Axes, what: str) -> None:
    """Write below a panel what its points, lines or boxes stand for, such as ``"3 seeds"``."""
    _COUNTS[panel] = f"n = {what}"


def _write_sizes(panel: Axes, groups: Iterable[Sequence[float]]) -> None:
    """Write how many values a box stands for."""
    if sizes := [len(values) for values in groups if len(values)]:
        write_count(panel, from_to(sizes))


def from_to(numbers: Collection[int]) -> str:
    """Write the smallest and the largest of some numbers: ``"3"``, ``"75 to 150"``."""
    least, most = min(numbers), max(numbers)
    return f"{least:,} to {most:,}" if most > least else f"{least:,}"
