"""Read the tensors of a safetensors file, and list them in an error."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from unrolled.errors import DataError, FileError, NonFiniteError
from unrolled.weights.checksum import check_tensors, read_metadata
from unrolled.weights.foreign_file import describe_foreign

__all__ = ["describe", "read_tensors"]

_LISTED = 5  # files in a message
_DESCRIBED = 12  # tensors in a message


def read_tensors(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read a safetensors file whose numbers are all finite, and compare its checksum if it carries one.

    All floating-point tensors become float32, or float64 if one of them is; neither changes a value.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    foreign = describe_foreign(path)
    if foreign is not None:
        raise DataError(foreign)
    _refuse_parts(Path(path))
    try:
        content = Path(path).read_bytes()
        tensors = dict(sorted(load(content).items()))
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (SafetensorError, KeyError) as error:
        raise DataError(
            f"{path} is no safetensors file, or is truncated ({error}); "
            "convert a checkpoint of torch.save with: unrolled convert model.pt model.safetensors"
        ) from error
    check_tensors(tensors, read_metadata(content), path)
    floating = {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
    dtype = torch.float64 if any(t.dtype == torch.float64 for t in floating.values()) else torch.float32
    for name, tensor in floating.items():
        tensors[name] = tensor.to(dtype)
        if not torch.isfinite(tensors[name]).all():
            raise NonFiniteError(f"{path}: {name} holds NaN or infinity; expected finite numbers")
    return tensors


def _refuse_parts(path: Path) -> None:
    """Refuse the folder of a file of weights, and the list of several files."""
    if path.is_dir():
        inside = sorted(each.name for each in path.glob("*.safetensors"))
        found = f"it has {', '.join(inside[:_LISTED])}" if inside else "it has no .safetensors file"
        raise FileError(f"{path} is a folder; give the file of the weights in it: {found}")
    if path.name.endswith(".index.json"):
        raise DataError(
            f"{path} lists the files over which weights are spread; load these files in Python, and write all tensors "
            "into one by safetensors.torch.save_file"
        )


def describe(tensors: Mapping[str, Tensor]) -> str:
    """List the first tensors with their shapes on one line, for an error."""
    listed = [f"{name} {list(tensor.shape)}" for name, tensor in tensors.items()]
    more = f", and {len(listed) - _DESCRIBED} more" if len(listed) > _DESCRIBED else ""
    return (", ".join(listed[:_DESCRIBED]) or "no tensors") + more
