"""Where a result comes from: the machine, the versions of the packages and the commit of this code."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

__all__ = ["describe_machine", "describe_processor", "find_commit", "versions"]

_PACKAGES = ("unrolled", "torch", "numpy", "scikit-learn", "nltk", "seqeval", "sacrebleu", "pytorch-crf", "captum")


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


def find_commit() -> str | None:
    """Return the commit of this code in twelve digits, with a plus where files differ from it; None outside git."""
    here = Path(__file__).parent

    def ask(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=True)  # noqa: S603, S607
        return done.stdout.strip()

    try:
        if not ask("ls-files", "--", __file__):
            return None  # installed below a checkout of something else
        commit = ask("rev-parse", "--short=12", "HEAD")
        return f"{commit}+" if ask("status", "--porcelain", "--untracked-files=no", "--", "../../..") else commit
    except (OSError, subprocess.CalledProcessError):
        return None


def versions() -> dict[str, str]:
    """List the versions of Python and of the installed packages that a result may depend on, and our own commit."""
    found = {"python": platform.python_version()}
    if commit := find_commit():
        found["commit"] = commit
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
