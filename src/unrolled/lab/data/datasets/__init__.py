"""The datasets: one file each, found by listing the folder."""

from __future__ import annotations

from unrolled.lab.data.corpus import DatasetSource
from unrolled.registry import Zoo

__all__ = ["DATASETS"]

DATASETS: Zoo[DatasetSource] = Zoo(__name__, DatasetSource, "dataset")  # type: ignore[type-abstract]  # a base
