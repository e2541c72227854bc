"""The states of all generators of random numbers: of Python, numpy and torch."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

__all__ = ["get_rng_state", "seed_all", "seeded", "set_rng_state"]


def seed_all(seed: int) -> None:
    """Seed all random number generators."""
    torch.manual_seed(seed)  # those of all GPUs as well
    random.seed(seed)
    np.random.seed(seed % 2**32)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed all random number generators, and restore the caller's states at the end."""
    before = get_rng_state()
    try:
        seed_all(seed)
        yield
    finally:
        set_rng_state(before)


def get_rng_state() -> dict[str, Tensor]:
    """Return the states of all random number generators."""
    version, words, gauss = random.getstate()
    drawn = np.random.get_state(legacy=False)
    assert isinstance(drawn, dict)
    states = {
        "torch": torch.get_rng_state(),
        "python": torch.tensor([version, *words]),
        "python.gauss": torch.tensor([] if gauss is None else [gauss], dtype=torch.float64),
        "numpy": torch.tensor([*drawn["state"]["key"].tolist(), drawn["state"]["pos"], drawn["has_gauss"]]),
        "numpy.gauss": torch.tensor([drawn["gauss"]], dtype=torch.float64),
    }
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def set_rng_state(states: Mapping[str, Tensor]) -> None:
    """Restore the states that :func:`get_rng_state` returned."""
    torch.set_rng_state(states["torch"])
    version, *words = states["python"].tolist()
    random.setstate((version, tuple(words), *(states["python.gauss"].tolist() or [None])))
    *keys, position, has_gauss = states["numpy"].tolist()
    np.random.set_state(("MT19937", np.array(keys, dtype=np.uint32), position, has_gauss, states["numpy.gauss"].item()))
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])
