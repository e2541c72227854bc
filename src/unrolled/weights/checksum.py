"""A checksum of tensors, which a safetensors file carries in its header."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import torch
from torch import Tensor

from unrolled.errors import DataError

__all__ = ["CHECKSUM", "check_tensors", "read_metadata", "tensors_checksum"]

CHECKSUM = "unrolled.checksum"
"""Its key in the header's metadata."""


def tensors_checksum(tensors: Mapping[str, Tensor]) -> str:
    """Compute the SHA-256 of names, types, shapes and values; the order of the tensors does not matter."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        total.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def check_tensors(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None, path: object) -> bool:
    """Compare tensors with the checksum of their file, and return whether it has one.

    Args:
        tensors: What was read.
        metadata: The metadata in the header of the file.
        path: The file, named in the error.

    Raises:
        DataError: If they differ.
    """
    expected = (metadata or {}).get(CHECKSUM)
    if expected is not None and tensors_checksum(tensors) != expected:
        raise DataError(f"{path} is damaged: its tensors are not those of its checksum; copy or train it again")
    return expected is not None


def read_metadata(content: bytes) -> dict[str, str]:
    """Return the metadata in the header of a whole safetensors file."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    found: dict[str, str] = header.get("__metadata__", {})
    return found
