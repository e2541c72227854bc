"""Refuse what cannot fit into memory: Linux promises more than there is, and kills the process that takes it."""

from __future__ import annotations

from pathlib import Path

import torch

from unrolled.errors import UsageError

__all__ = ["available_memory", "refuse_too_long"]

_COPIES = 30
"""Of the states of a network, while its steps are linearised and swept: measured with GRU and LSTM, 1 and 2 layers."""
_ALWAYS = 2**30  # bytes that are not worth a look
_LIMITS = (  # of a container: its limit, and in a file of its own what it uses beside the cache of files
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.stat", "anon"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.stat", "total_rss"),
)


def available_memory() -> int | None:
    """Return how many bytes this process may still take; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found = [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError):
        return None
    for limit, used, name in _LIMITS:
        try:
            numbers = dict(line.split() for line in Path(used).read_text(encoding="ascii").splitlines())
            found.append(int(Path(limit).read_text(encoding="ascii")) - int(numbers[name]))
        except (OSError, ValueError, KeyError):  # no such file, or "max"
            continue
    return max(0, min(found)) if found else None


def refuse_too_long(time: int, batch: int, states: int, dtype: torch.dtype, device: torch.device) -> None:
    """Refuse a batch whose linearisation takes more memory than there is; on a GPU torch says so itself.

    Args:
        time: Number of steps.
        batch: Number of sequences.
        states: Size of the states of all layers and directions.
        dtype: Their type.
        device: Where they are.
    """
    needed = _COPIES * time * batch * states * dtype.itemsize
    if needed < _ALWAYS or device.type != "cpu":
        return
    free = available_memory()
    if free is not None and needed > free:
        texts = f"{batch:,} texts of up to {time:,} tokens take" if batch > 1 else f"a text of {time:,} tokens takes"
        raise UsageError(
            f"{texts} about {needed / 2**30:,.0f} GB to open, and {free / 2**30:,.1f} GB are free; give a shorter "
            "text, or fewer at once"
        )
