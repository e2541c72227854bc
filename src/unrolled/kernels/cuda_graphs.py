r"""A kernel's passes as CUDA graphs: some hundred launches, each of which costs more than it does, become one.

A step of a recurrence is a handful of operations, and a GPU is done with one of a small network before the next has
been asked for. A recorded pass is asked for as a whole. What is recorded reads and writes memory of its own, so tensors
are copied in and results copied out, and each shape is a recording: it pays for small states and batches of few
shapes, such as a language model's windows. It is therefore asked for, never chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import torch
from torch import Tensor

__all__ = ["CUDAGraphPass", "CapturedPass", "GraphCache", "Pass", "cuda_graphs", "current_graph_cache"]

Pass = Callable[..., tuple[Tensor | None, ...]]
"""A function of tensors, None among them for what does not exist, that always does the same work."""

WARM_UP = 3  # runs before a recording: libraries set themselves up in the first, which may not be recorded


class CapturedPass(Protocol):
    """A pass that can be done again on the memory that it was recorded with."""

    results: tuple[Tensor | None, ...]
    """What the pass returned; done again, it writes there."""

    def __call__(self) -> None:
        """Do it again."""


class CUDAGraphPass:
    """A pass as a CUDA graph.

    Args:
        run: the pass.
        tensors: what it reads, on one GPU.

    Source:
        https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
    """

    def __init__(self, run: Pass, tensors: Sequence[Tensor | None]) -> None:
        self.device = next(each.device for each in tensors if each is not None)
        with torch.cuda.device(self.device):  # it need not be the current one
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                for _ in range(WARM_UP):
                    run(*tensors)
            torch.cuda.current_stream().wait_stream(aside)
            self.graph = torch.cuda.CUDAGraph()
            # of this thread alone: another one may be pinning a batch's memory
            with torch.cuda.graph(self.graph, stream=aside, capture_error_mode="thread_local"):
                self.results = run(*tensors)

    def __call__(self) -> None:
        """Launch the graph."""
        with torch.cuda.device(self.device):
            self.graph.replay()


class GraphCache:
    """Passes that have been recorded, by what they are and the shapes they were recorded for.

    A recording's memory is one: passes of the same shape must not run at once, in two streams.

    Args:
        most: how many are kept; a pass that would be one more is run as it is.
        device: the type of the devices whose passes are recorded.
        record: records a pass.
    """

    def __init__(
        self,
        most: int = 32,
        device: str = "cuda",
        record: Callable[[Pass, Sequence[Tensor | None]], CapturedPass] = CUDAGraphPass,
    ) -> None:
        self.most, self.device, self.record = most, device, record
        self.kept: dict[Hashable, tuple[list[Tensor | None], CapturedPass]] = {}

    def serve(self, tensors: Sequence[Tensor | None]) -> bool:
        """Tell whether a pass over some tensors is to be recorded."""
        return all(each is None or each.device.type == self.device for each in tensors)

    @torch.inference_mode(mode=False)  # what is recorded here is run again outside of it
    @torch.no_grad()
    def run(self, key: Hashable, run: Pass, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        """Do a pass: from its recording, which is made where there is none.

        Args:
            key: what the pass is; passes with one key do the same to tensors of the same shapes.
            run: the pass.
            *tensors: what it reads.

        Returns:
            What it returns, in memory of the caller's.
        """
        shapes = tuple(None if each is None else (each.shape, each.dtype, each.device) for each in tensors)
        whole = (key, shapes, torch.get_float32_matmul_precision())
        if whole not in self.kept:
            if len(self.kept) >= self.most:
                return run(*tensors)
            own = [None if each is None else each.detach().clone() for each in tensors]
            self.kept[whole] = (own, self.record(run, own))
        own, recording = self.kept[whole]
        for mine, theirs in zip(own, tensors, strict=True):
            if mine is not None and theirs is not None:
                mine.copy_(theirs)
        recording()
        return tuple(None if each is None else each.clone() for each in recording.results)


_current: ContextVar[GraphCache | None] = ContextVar("recordings", default=None)


def current_graph_cache() -> GraphCache | None:
    """Give what :func:`cuda_graphs` asked for, None outside of it."""
    return _current.get()


@contextmanager
def cuda_graphs(recordings: GraphCache | None = None) -> Iterator[GraphCache]:
    """Run kernels from recordings inside a ``with`` block, where they run on a GPU in full precision.

    Args:
        recordings: those of an earlier block, to go on with them; new ones when left out.

    Yields:
        The recordings.

    Example:
        >>> import torch
        >>> from unrolled.cells import cuda_graphs, recurrent
        >>> network = recurrent("gru", 8, 16)
        >>> with cuda_graphs() as recordings:  # on a CPU nothing is recorded
        ...     outputs, _ = network(torch.randn(5, 2, 8))
        >>> len(recordings.kept)
        0
    """
    chosen = recordings or GraphCache()
    token = _current.set(chosen)
    try:
        yield chosen
    finally:
        _current.reset(token)
