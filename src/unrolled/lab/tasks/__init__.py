"""The tasks: what a model is trained for, one a file, found by listing the folder."""

from __future__ import annotations

from unrolled.lab.training.task import Task
from unrolled.registry import Registry

__all__ = ["TASKS"]

TASKS: Registry[Task] = Registry(__name__, Task, "task")  # type: ignore[type-abstract, type-arg]  # members are concrete
