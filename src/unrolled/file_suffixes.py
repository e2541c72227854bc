"""Names of files that are to be written: none ends in the suffix of another format."""

from __future__ import annotations

import os
from pathlib import Path

from unrolled.errors import UsageError

__all__ = ["refuse_other_format"]

_OF_OTHER_PROGRAMS = frozenset(
    ".bin .ckpt .csv .htm .html .json .jsonl .ods .parquet .pdf .pickle .pkl .png .pt .pth .safetensors .svg .tsv .txt "
    ".xls .xlsx".split()
)
"""Suffixes from which programs choose how to read a file."""


def refuse_other_format(path: object, *suffixes: str) -> None:
    """Refuse a name whose suffix is that of another format.

    Args:
        path: Where a file is to be written. What is no path at all, the writing refuses.
        *suffixes: Those of its format, the usual one first.

    Raises:
        UsageError: It names both formats.
    """
    if not isinstance(path, str | os.PathLike):
        return
    suffix = Path(os.fsdecode(path)).suffix.lower()
    if suffix in _OF_OTHER_PROGRAMS and suffix not in suffixes:
        raise UsageError(
            f"{path} would hold the format of {suffixes[0]}, not of {suffix}; choose a name that ends in {suffixes[0]}"
        )
