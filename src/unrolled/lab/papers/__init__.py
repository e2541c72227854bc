"""The experiments: one published table or figure a file, found by listing the folder."""

from __future__ import annotations

from unrolled.lab.papers.framework.experiment import Experiment
from unrolled.registry import Registry

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: Registry[Experiment] = Registry(__name__, Experiment, "experiment")  # type: ignore[type-abstract]  # a base
