"""What all tests share: tests/reference.py importable, one thread, and the real datasets where they are at hand."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
torch.set_num_threads(1)

pytest_plugins = ["command_line"]  # its fixture runs the command line in the test's own process


@pytest.fixture
def data_folder():
    """Where the real datasets lie."""
    folder = os.environ.get("UNROLLED_DATA")
    if not folder:
        pytest.skip("UNROLLED_DATA is not set: the real datasets were not looked at")
    return Path(folder)
