"""Where a computation runs: processor, threads and versions of the libraries."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch

from unrolled.errors import DataError
from unrolled.lab.training.versions import installed_versions, package_version

__all__ = [
    "Environment",
    "describe_machine",
    "describe_processor",
    "threads",
]

_PACKAGES = ("torch", "numpy", "safetensors")


@dataclass(frozen=True)
class Environment:
    """What the last bits of a training depend on, beside its settings and its data."""

    threads: int | None
    """Number of threads of torch; None in a run of an earlier version."""
    processor: str
    versions: Mapping[str, str]
    """Versions of this package, of Python and of the libraries that compute."""

    @classmethod
    def of_this_process(cls) -> Self:
        """Describe the environment of this process."""
        versions = {"unrolled": package_version(), "python": platform.python_version(), **installed_versions(_PACKAGES)}
        return cls(torch.get_num_threads(), describe_processor(), versions)

    def to_record(self) -> dict[str, Any]:
        """Return the environment as a JSON object."""
        return {"threads": self.threads, "processor": self.processor, "versions": dict(self.versions)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the environment of a JSON object; DataError if it is not one."""
        try:
            count = record.get("threads")
            if count is not None and (type(count) is not int or count < 1):
                raise ValueError(f"threads is {str(count)[:40]}")
            versions = {str(name): str(found) for name, found in record.get("versions", {}).items()}
            return cls(count, str(record.get("processor", "")), versions)
        except (TypeError, ValueError, AttributeError) as error:
            raise DataError(f"the environment is wrong; {error}") from None

    def differences(self, now: Environment) -> tuple[str, ...]:
        """Return what differs now, as ``torch 2.12.0 before, 2.13.0 now``; what was not recorded does not count."""
        before = {"processor": self.processor, **self.versions}
        after = {"processor": now.processor, **now.versions}
        return tuple(
            f"{name} {found} before, {after.get(name, 'none')} now"
            for name, found in before.items()
            if found and found != after.get(name)
        )


@contextmanager
def threads(count: int | None) -> Iterator[bool]:
    """Compute with a number of threads, if the machine has as many processors; the value says whether it does so."""
    before = torch.get_num_threads()
    if count is None or count == before:
        yield True
        return
    if count > _processors():
        yield False
        return
    torch.set_num_threads(count)
    try:
        yield True
    finally:
        torch.set_num_threads(before)


def _processors() -> int:
    """Count the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe_processor() -> str:
    """Name the processor, its vector instructions, its cores and the GPU if there is one; not the machine's name."""
    model = platform.processor() or platform.machine()
    table = Path("/proc/cpuinfo")
    if table.is_file():
        lines = table.read_text(encoding="utf-8", errors="replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    cores = f"{model} ({torch.backends.cpu.get_cpu_capability()}), {os.cpu_count()} cores"
    return f"{cores}, {torch.cuda.get_device_name()}" if torch.cuda.is_available() else cores


def describe_machine() -> str:
    """Name the processor and the number of threads that torch uses."""
    return f"{describe_processor()}; {torch.get_num_threads()} thread(s)"
