"""How a run folder names files: with ~ for the home folder, whose name is the user's; model folders are shared."""

from __future__ import annotations

from pathlib import Path

from unrolled.named_sources import HUB_PREFIX

__all__ = ["abbreviate", "expand"]

_HOME = "~/"


def abbreviate(name: str) -> str:
    """Write ``~`` for the home folder of this user, unless it is the root, as that of a container may be.

    Names of other files and of datasets stay.
    """
    prefix = HUB_PREFIX if name.startswith(HUB_PREFIX) else ""
    path = Path(name.removeprefix(prefix))
    for home in _homes():
        if home != home.parent and path.is_absolute() and path.is_relative_to(home):
            return f"{prefix}{_HOME}{path.relative_to(home).as_posix()}"
    return name


def expand(name: str) -> str:
    """Write the home folder of this user for ``~``."""
    prefix = HUB_PREFIX if name.startswith(HUB_PREFIX) else ""
    bare, homes = name.removeprefix(prefix), _homes()
    return f"{prefix}{homes[0] / bare.removeprefix(_HOME)}" if bare.startswith(_HOME) and homes else name


def _homes() -> tuple[Path, ...]:
    """Return the home folder, as it is named and as it is without links; none where a user has none."""
    try:
        home = Path.home()
    except RuntimeError:
        return ()
    return tuple(dict.fromkeys((home, home.resolve())))
