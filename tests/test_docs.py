"""docs/models.md names models that exist; that each one is described there is for the reviewer of a new one to see."""

from __future__ import annotations

import re
from pathlib import Path

from unrolled.cells import CELLS
from unrolled.composition import ENCODERS

PAGE = (Path(__file__).parent.parent / "docs" / "models.md").read_text()


def test_every_model_that_the_page_lists_exists():
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(listed) > 30
    assert listed <= {*CELLS.names(), *ENCODERS.names()}
