from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def data_folder():
    """Where the real datasets lie."""
    folder = os.environ.get("UNROLLED_DATA")
    if not folder:
        pytest.skip("UNROLLED_DATA is not set: the real datasets were not looked at")
    return Path(folder)
