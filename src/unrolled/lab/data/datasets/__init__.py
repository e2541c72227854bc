"""The datasets: one file a dataset or a family of them, found by listing this folder."""

from __future__ import annotations

from unrolled.lab.data.corpus import Dataset
from unrolled.registry import Registry

__all__ = ["DATASETS"]

DATASETS: Registry[Dataset] = Registry(__name__, Dataset, "dataset")  # type: ignore[type-abstract]  # a base
