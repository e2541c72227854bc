"""Optional packages: which extra they belong to, and what to install when one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from unrolled.errors import UsageError

__all__ = ["require_extra"]

_PACKAGES = {
    "lab": ("pooch", "pydantic", "requests", "scipy", "sklearn", "yaml"),
    "figures": ("matplotlib",),
    "tables": ("pandas",),
    "tokenizers": ("tokenizers",),
    "hf": ("datasets",),
}
"""What must be importable for an extra to count as installed."""
_CONTENTS = {
    "lab": "the laboratory",
    "figures": "matplotlib",
    "tables": "pandas or polars",
    "tokenizers": "the package tokenizers",
    "hf": "the package datasets",
}


def require_extra(extra: str, user: str) -> None:
    """Check that an extra is installed.

    Args:
        extra: ``"lab"``, ``"figures"``, ``"tables"``, ``"tokenizers"`` or ``"hf"``.
        user: What needs the extra, as the error names it: ``"`unrolled train`"``.

    Raises:
        UsageError: If a package of the extra is missing; the text says what to install.
    """
    if not all(map(find_spec, _PACKAGES[extra])):
        raise UsageError(f"{user} needs {_CONTENTS[extra]}: pip install 'unrolled[{extra}]'")
