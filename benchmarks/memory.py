"""How much memory a call takes, as Linux counts it."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path


def peak(call: Callable[[], object]) -> float:
    """Tell what a call adds to the memory of the process, at most, in megabytes."""
    ctypes.CDLL(None).malloc_trim(0)  # what earlier calls freed would be used again, and not be seen
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _kilobytes("VmRSS")
    call()
    return (_kilobytes("VmHWM") - before) / 1024


def _kilobytes(field: str) -> int:
    return int(re.search(rf"{field}:\s*(\d+)", Path("/proc/self/status").read_text())[1])
