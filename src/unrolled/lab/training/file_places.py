"""Where the files of a run lie: their paths, and their places in a folder to which they may have moved."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

__all__ = ["absolute_path", "below_common", "places_in"]


def places_in(names: Sequence[str], folder: Path) -> dict[str, list[Path]]:
    """Name where each of some files may lie in a folder: below it as in the folder that held all, or by its name."""
    below = below_common(names)
    count = Counter(path.name for path in set(map(_normal, names)))
    places: dict[str, list[Path]] = {}
    for name in names:
        inside = [folder / below[name]] if name in below else []
        alone = [folder / _normal(name).name] if count[_normal(name).name] == 1 else []
        places[name] = list(dict.fromkeys([*inside, *alone]))
    return places


def below_common(names: Sequence[str]) -> dict[str, Path]:
    """Name files by their places below the deepest folder that holds all; nothing on different drives of Windows."""
    try:
        common = os.path.commonpath([_normal(name).parent for name in names])
    except ValueError:
        return {}
    return {name: _normal(name).relative_to(common) for name in names}


def _normal(name: str) -> Path:
    return Path(os.path.normpath(Path(name).absolute()))


def absolute_path(name: str) -> str:
    """Make the path of an existing file absolute; a link is not followed, since its suffix tells the format."""
    path = Path(name)
    return str(path.parent.resolve() / path.name) if path.is_file() else name
