"""The README names every cell and every encoder: found by listing, so a new file is missed at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from unrolled.cells import CELLS
from unrolled.composition import ENCODERS

README = (Path(__file__).parent.parent / "README.md").read_text()


@pytest.mark.parametrize("name", [*CELLS.names(), *ENCODERS.names()])
def test_the_readme_names_it(name):
    section = README.partition("## Every cell")[2].partition("\n## ")[0]
    assert f"`{name}`" in section
