"""Modules of TorchScript: what an error calls them, and how to come by a Python module in their place."""

from __future__ import annotations

import torch

__all__ = ["python_form", "script_kind"]


def script_kind(module: torch.jit.ScriptModule) -> str:
    """Return ``"traced"`` or ``"scripted"`` for a module of TorchScript; one from a file counts as scripted."""
    return "traced" if "Traced" in type(module).__name__ else "scripted"


def python_form(module: torch.jit.ScriptModule, *, part: bool = False) -> str:
    """Say how to come by a Python module with the same weights, and what to do with it.

    Args:
        module: The module of TorchScript.
        part: Whether the model holds it, so that the Python module stands in its place.
    """
    kind = type(module)
    if not kind.__module__.startswith("torch."):  # its user wrote it in TorchScript: it was made of no other module
        return (
            f"start Python with the environment variable PYTORCH_JIT=0, or derive {kind.__name__} from "
            "torch.nn.Module, without torch.jit.script_method, with the same weights"
        )
    put = (
        "put the Python module that it was made of in its place"
        if part
        else "pass the Python module that it was made of"
    )
    return f"{put}, with its weights: module.load_state_dict(scripted.state_dict())"
