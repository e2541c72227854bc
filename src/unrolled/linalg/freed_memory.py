"""Keep freed memory in the process, so that the next call need not ask the system for it again."""

from __future__ import annotations

from functools import lru_cache

import torch

__all__ = ["keep_freed_memory"]

# Just below the largest block that glibc counts (M_MMAP_THRESHOLD).
_LARGEST = 32 * 2**20 - 2**16


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Free one large block, which is never written to.

    glibc gives memory back to the system where more than twice the largest block that was ever freed lies unused. An
    account frees some fifty megabytes at its end, as a decomposition does; without this, the page faults of the next
    one are a sixth of its time. Other allocators are not changed by it.
    """
    torch.empty(_LARGEST, dtype=torch.uint8, device="cpu")
