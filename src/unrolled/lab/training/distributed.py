"""The processes that learn one batch together: those of ``torchrun``, or this one alone.

Every process has the same corpus, settings and weights and draws the same plan; of each batch it learns its share of
the rows. The first one judges, writes and decides, and tells the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from safetensors.torch import load, save
from torch import Tensor, distributed

from unrolled.errors import UsageError
from unrolled.lab.data.batches.base import Batch

__all__ = ["ProcessGroup", "joined", "own"]

B = TypeVar("B", bound=Batch)
_PATIENCE = timedelta(days=1)  # the others wait while the first one judges; one that has died is noticed at once


@dataclass(frozen=True)
class ProcessGroup:
    """This process among its fellows."""

    rank: int
    count: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this is the one that writes."""
        return self.rank == 0

    @property
    def alone(self) -> bool:
        """Whether there is no other."""
        return self.count == 1

    def share(self, batch: B) -> tuple[B, int]:
        """Take this process's rows of a batch."""
        if self.alone:
            return batch, 1
        if len(batch) <= self.rank:
            return batch.share(0, len(batch)), 0
        return batch.share(self.rank, self.count), 1

    def sum(self, values: Sequence[float]) -> list[float]:
        """Add up numbers over all processes."""
        if self.alone:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(tensor)
        return tensor.tolist()

    def told(self, values: Sequence[float]) -> list[float]:
        """Take over the first process's numbers."""
        return self.sum(values if self.first else [0.0] * len(values))

    def gather(self, tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        """Collect the tensors of all processes."""
        if self.alone:
            return [dict(tensors)]
        # as one row of bytes each, since shapes differ: the rows of a batch rarely divide evenly
        mine = torch.frombuffer(bytearray(save({name: own(each) for name, each in tensors.items()})), dtype=torch.uint8)
        sizes = [0.0] * self.count
        sizes[self.rank] = float(len(mine))
        lengths = [int(size) for size in self.sum(sizes)]
        padded = torch.zeros(max(lengths), dtype=torch.uint8, device=self.device)
        padded[: len(mine)] = mine.to(self.device)
        rows = [torch.empty_like(padded) for _ in lengths]
        distributed.all_gather(rows, padded)
        return [load(row[:length].cpu().numpy().tobytes()) for row, length in zip(rows, lengths, strict=True)]

    def wait(self) -> None:
        """Go on when all processes have come here."""
        self.sum([0.0])


def own(tensor: Tensor) -> Tensor:
    """Copy a tensor to the CPU, into memory of its own."""
    return tensor.detach().to("cpu", copy=True).contiguous()


@contextmanager
def joined(device: str) -> Iterator[ProcessGroup]:
    """Join the processes that ``torchrun`` started, by gloo on CPUs and by nccl on GPUs; all see one file system."""
    local, count = (int(os.environ.get(name, "0")) for name in ("LOCAL_RANK", "WORLD_SIZE"))
    if distributed.is_initialized():  # by a program of the user's own, which ends it as well
        yield ProcessGroup(distributed.get_rank(), distributed.get_world_size(), _device(device, local))
        return
    if count <= 1:
        yield ProcessGroup(0, 1, _device(device, 0))
        return
    chosen = _device(device, local)
    distributed.init_process_group("nccl" if chosen.type == "cuda" else "gloo", timeout=_PATIENCE)
    try:
        yield ProcessGroup(distributed.get_rank(), count, chosen)
    finally:
        distributed.destroy_process_group()


def _device(name: str, local: int) -> torch.device:
    """Find the device; of several processes on a machine each takes the GPU of its number."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name)
    if device.type == "cpu":
        return device
    found = torch.cuda.device_count()
    index = device.index if device.index is not None else local
    if index >= found:
        raise UsageError(f"the device is {name}; expected a GPU, of which this machine shows {found}")
    torch.cuda.set_device(index)
    return torch.device("cuda", index)
