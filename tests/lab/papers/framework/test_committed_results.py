"""The committed results: every findings file speaks of exactly the results beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from unrolled.lab.papers import EXPERIMENTS
from unrolled.lab.papers.framework.findings import fingerprint, read_findings
from unrolled.lab.papers.framework.result_store import Archive
from unrolled.lab.papers.framework.runner import collect

RESULTS = Path(__file__).parents[4] / "results"


@pytest.mark.parametrize("name", EXPERIMENTS.names())
def test_findings_speak_of_the_committed_results(name):
    experiment, archive = EXPERIMENTS.get(name)(), Archive(RESULTS)
    for scale, (digits, text) in read_findings(RESULTS, experiment).items():
        assert text, f"{name}.md has no findings at scale {scale}"
        found = fingerprint(experiment, collect(experiment, scale, archive))
        assert digits == found, f"stale findings: rewrite results/{name}.md for the fingerprint {scale} {found}"
