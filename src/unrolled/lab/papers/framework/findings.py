"""Findings: sentences written by hand, beside the fingerprint of the results they speak of.

``results/PAPER/ITEM.md`` holds a block for each scale: a line ``<!-- fingerprint: SCALE DIGITS -->``, then the findings
in Markdown. Findings whose fingerprint is not that of the results are stale and are not shown.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from unrolled.lab.papers.framework.experiment import Experiment, Result, Scale

__all__ = ["current_findings", "fingerprint", "read_findings"]

_BLOCK = re.compile(r"^<!-- fingerprint: (\w+) ([0-9a-f]{16}) -->\n", re.MULTILINE)


def fingerprint(experiment: Experiment, results: Sequence[Result]) -> str:
    """Digest the keys and values of results, in any order, as sixteen hexadecimal digits."""
    keyed = {experiment.key(each.trial): dict(each.values) for each in results}
    return hashlib.sha256(json.dumps(keyed, sort_keys=True).encode()).hexdigest()[:16]


def read_findings(folder: Path, experiment: Experiment) -> dict[Scale, tuple[str, str]]:
    """Read the findings of an item: for each scale the fingerprint they carry and their text.

    Args:
        folder: Folder of the results.
        experiment: The item.
    """
    path = folder / f"{experiment.name}.md"
    if not path.is_file():
        return {}
    _, *blocks = _BLOCK.split(path.read_text(encoding="utf-8"))
    return {
        scale: (digits, text.strip())  # type: ignore[misc]  # a word that is no scale is never asked for
        for scale, digits, text in zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True)
    }


def current_findings(folder: Path, experiment: Experiment, scale: Scale, results: Sequence[Result]) -> str | None:
    """Give the findings about exactly these results as Markdown, or a note that there are only stale ones.

    Args:
        folder: Folder of the results.
        experiment: The item.
        scale: The scale at which it was run.
        results: The results that the findings must speak of.

    Returns:
        None where nothing has been written about this scale.
    """
    digits, text = read_findings(folder, experiment).get(scale, (None, ""))
    if digits is None:
        return None
    now = fingerprint(experiment, results)
    return text if digits == now else _stale_note(scale, now)


def _stale_note(scale: Scale, digits: str) -> str:
    """Say that the findings speak of other results, and the fingerprint that new findings must carry."""
    return f"The written findings speak of other results. These have the fingerprint: {scale} {digits}"
