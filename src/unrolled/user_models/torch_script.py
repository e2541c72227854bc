"""Which modules TorchScript runs."""

from __future__ import annotations

from typing import TypeGuard

import torch

__all__ = ["is_scripted"]


def is_scripted(module: object) -> TypeGuard[torch.jit.ScriptModule]:
    """Tell whether TorchScript runs a module, outside Python.

    In a Python that was started with ``PYTORCH_JIT=0`` it runs none, and modules of the class are plain ones. What it
    runs has the name of what it was made of.
    """
    return isinstance(module, torch.jit.ScriptModule) and hasattr(module, "original_name")
