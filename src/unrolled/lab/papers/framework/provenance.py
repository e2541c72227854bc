"""Saying where a figure comes from: the machine and the versions."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

__all__ = ["describe_machine", "describe_processor", "versions"]

_PACKAGES = ("unrolled", "torch", "numpy", "scikit-learn", "nltk", "seqeval", "sacrebleu", "pytorch-crf", "captum")


def describe_processor() -> str:
    """Name the processor, its vector instructions, its cores and, if there is one, the GPU.

    Returns:
        One line, without the machine's own name.
    """
    model = platform.processor() or platform.machine()
    table = Path("/proc/cpuinfo")
    if table.is_file():
        lines = table.read_text(encoding="utf-8", errors="replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    cores = f"{model} ({torch.backends.cpu.get_cpu_capability()}), {os.cpu_count()} cores"
    return f"{cores}, {torch.cuda.get_device_name()}" if torch.cuda.is_available() else cores


def describe_machine() -> str:
    """Name the processor, and how many threads torch uses.

    Returns:
        One line, without the machine's own name.
    """
    return f"{describe_processor()}; {torch.get_num_threads()} thread(s)"


def versions() -> dict[str, str]:
    """List the versions of Python and of the packages that a figure may depend on.

    Returns:
        Those that are installed, by name.
    """
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
