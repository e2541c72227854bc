"""Distributed training: the processes that ``torchrun`` started, or this one alone.

Every process has the same corpus, settings and weights and draws the same order of batches; it trains on its rows of
each batch. The main process, rank 0, evaluates, writes the files and takes decisions, and broadcasts them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import count
from typing import TypeVar

import torch
from safetensors.torch import load, save
from torch import Tensor, distributed
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from unrolled.errors import UnrolledError, UsageError
from unrolled.lab.data.batches.base import Batch

__all__ = ["ProcessGroup", "cpu_copy", "process_group"]

B = TypeVar("B", bound=Batch)
R = TypeVar("R")
_TIMEOUT = timedelta(days=1)  # the others wait while the main process evaluates; a process that dies is noticed at once
_JOINED = count()  # of groups: all processes join the same ones in the same order


@dataclass(frozen=True)
class ProcessGroup:
    """Rank of this process, size of the process group, and the device of this process."""

    rank: int
    world_size: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    @property
    def is_single(self) -> bool:
        """Whether there is only this process."""
        return self.world_size == 1

    def shard(self, batch: B) -> tuple[B, int]:
        """Return this process's rows of a batch, and their weight.

        With fewer rows than processes, some processes borrow a row of weight 0, since each must compute a gradient.
        """
        if self.is_single:
            return batch, 1
        if len(batch) <= self.rank:
            return batch.share(0, len(batch)), 0
        return batch.share(self.rank, self.world_size), 1

    def sum(self, values: Sequence[float]) -> list[float]:
        """Add up numbers over all processes; every process receives the sums."""
        if self.is_single:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(tensor)
        return tensor.tolist()

    def broadcast(self, values: Sequence[float]) -> list[float]:
        """Return the main process's numbers in every process; all give the same count of numbers."""
        return self.sum(values if self.is_main else [0.0] * len(values))

    def gather(self, tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        """Return the tensors of every process, by rank; names and shapes may differ between processes."""
        if self.is_single:
            return [dict(tensors)]
        # one row of bytes a process, since shapes differ: the rows of a batch rarely divide evenly
        mine = torch.frombuffer(
            bytearray(save({name: cpu_copy(each) for name, each in tensors.items()})), dtype=torch.uint8
        )
        sizes = [0.0] * self.world_size
        sizes[self.rank] = float(len(mine))
        lengths = [int(size) for size in self.sum(sizes)]
        padded = torch.zeros(max(lengths), dtype=torch.uint8, device=self.device)
        padded[: len(mine)] = mine.to(self.device)
        rows = [torch.empty_like(padded) for _ in lengths]
        distributed.all_gather(rows, padded)
        return [load(row[:length].cpu().numpy().tobytes()) for row, length in zip(rows, lengths, strict=True)]

    def in_main(self, action: Callable[[], R]) -> R | None:
        """Do something in the main process; what it refuses stops all processes. The others return None."""
        found, error = None, None
        if self.is_main:
            try:
                found = action()
            except UnrolledError as refused:
                error = refused
        (failed,) = self.broadcast([float(error is not None)])
        if error is not None:
            raise error
        if failed:
            raise UsageError("the main process has refused to go on; its message says why")
        return found

    def barrier(self) -> None:
        """Wait until all processes have come here."""
        self.sum([0.0])


def cpu_copy(tensor: Tensor) -> Tensor:
    """Copy a tensor to contiguous memory on the CPU."""
    return tensor.detach().to("cpu", copy=True).contiguous()


@contextmanager
def process_group(device: str) -> Iterator[ProcessGroup]:
    """Join the process group of ``torchrun``: gloo on CPUs, nccl on GPUs. All processes share one file system."""
    local, size = (int(os.environ.get(name, "0")) for name in ("LOCAL_RANK", "WORLD_SIZE"))
    if distributed.is_initialized():  # by the user's program, which also destroys it
        yield ProcessGroup(distributed.get_rank(), distributed.get_world_size(), _device(device, local))
        return
    if size <= 1:
        yield ProcessGroup(0, 1, _device(device, 0))
        return
    chosen = _device(device, local)
    group = next(_JOINED)
    store, rank = _shared_store()
    distributed.init_process_group(
        "nccl" if chosen.type == "cuda" else "gloo",
        # its own part of the store: another part has the addresses of the group that was left
        store=PrefixStore(f"unrolled/{group}", store),
        rank=rank,
        world_size=size,
        timeout=_TIMEOUT,
    )
    try:
        yield ProcessGroup(rank, size, chosen)
    finally:
        distributed.destroy_process_group()


@cache
def _shared_store() -> tuple[Store, int]:
    """Return the store that all processes share as long as they run, and the rank of this one."""
    store, rank, _ = next(rendezvous("env://", timeout=_TIMEOUT))
    return store, rank


def _device(name: str, local: int) -> torch.device:
    """Return the device; each of several processes on a machine takes the GPU of its local rank."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name)
    if device.type == "cpu":
        return device
    found = torch.cuda.device_count()
    index = device.index if device.index is not None else local
    if index >= found:
        raise UsageError(f"device is {name}, but this machine has {found} visible GPUs; choose another device, or cpu")
    torch.cuda.set_device(index)
    return torch.device("cuda", index)
