"""The versions of this package, with the commit of its code, and of others."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import unrolled

__all__ = ["find_commit", "installed_versions", "package_version"]


def package_version() -> str:
    """Return the version of this package; in a git checkout with its commit, as ``0.1.0+g0123456789ab``."""
    commit = find_commit()
    if commit is None:
        return unrolled.__version__
    return f"{unrolled.__version__}+g{commit.rstrip('+')}{'.changed' if commit.endswith('+') else ''}"


@cache
def find_commit() -> str | None:
    """Return the commit of this code in twelve digits, with a plus where files differ from it; None outside git."""
    here = Path(__file__).parent

    def ask(*words: str) -> str:
        # the words are those below, and git is the one of the user's own PATH
        done = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=True)  # noqa: S603, S607
        return done.stdout.strip()

    try:
        if not ask("ls-files", "--", __file__):
            return None  # installed below a checkout of something else
        commit = ask("rev-parse", "--short=12", "HEAD")
        return f"{commit}+" if ask("status", "--porcelain", "--untracked-files=no", "--", "../..") else commit
    except (OSError, subprocess.CalledProcessError):
        return None


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of those of these packages that are installed."""
    return {name: found for name in names if (found := _version(name)) is not None}


@cache
def _version(name: str) -> str | None:
    """Return the version of a package; what this process has loaded stays, and to read it takes milliseconds."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
