"""A function for scripts that run apart: the peak memory of their own process.

``resource.getrusage`` does not do: on Linux it also counts what the parent had in memory when it started the process.
"""

from __future__ import annotations

__all__ = ["MEGABYTES"]

MEGABYTES = """
def megabytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
"""
