"""Importing the laboratory leaves the generators of random numbers, which are the user's, as they are."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import random
import sys

before = random.getstate()
import {module}

assert "rich" in sys.modules
sys.exit("drew" if random.getstate() != before else 0)
"""
SHOWING = ["unrolled.lab.training.progress", "unrolled.lab.cli.printed_classes", "unrolled.lab.cli.polarity_table"]


@pytest.mark.slow
@pytest.mark.parametrize("module", [*SHOWING, "rich.style"])
def test_what_prints_draws_no_random_number_when_it_is_imported(module):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=module)], capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == ("drew" if module == "rich.style" else "")
