"""Texts and series with their answers, and settings of an estimator that learns them in a moment."""

from __future__ import annotations

import numpy as np

TEXTS = ["a good film", "a bad film", "a fine plot", "a dull plot"] * 4
MOODS = ["+", "-", "+", "-"] * 4
SMALL = {"hidden": 4, "embedding": 4, "epochs": 2, "random_state": 0}


def sums(seed=0, count=120):
    """Series of two features, and the sum of the first one."""
    series = np.random.default_rng(seed).normal(size=(count, 6, 2))
    return series, series[:, :, 0].sum(axis=1)
