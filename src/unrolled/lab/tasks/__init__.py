"""The tasks, one a file. Listing the folder finds them."""

from __future__ import annotations

from unrolled.lab.training.task import Task
from unrolled.registry import Registry

__all__ = ["TASKS"]

TASKS: Registry[Task] = Registry(__name__, Task, "task")  # type: ignore[type-abstract, type-arg]  # members are concrete
