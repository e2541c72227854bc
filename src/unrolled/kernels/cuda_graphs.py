r"""The passes of a kernel as CUDA graphs: hundreds of kernel launches become one.

A recurrent step is a handful of operations, and for a small network a GPU finishes each one before the next has been
launched. A CUDA graph is launched as a whole. It reads and writes its own memory, so tensors are copied in and results
copied out, and every shape needs its own graph. Graphs therefore pay for small states and batches of few shapes, such
as the windows of a language model. They are used only on request.
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
"""A function of tensors (None for an optional one that does not exist) that always does the same work."""

_WARM_UP = 3  # runs before the capture: libraries initialise themselves in the first run, which cannot be captured


class CapturedPass(Protocol):
    """A pass that can be replayed on the memory that it was captured with."""

    results: tuple[Tensor | None, ...]
    """The tensors that the pass returned; a replay writes into them."""

    def __call__(self) -> None:
        """Replay the pass."""


class CUDAGraphPass:
    """A pass captured as a CUDA graph, on the GPU of its tensors.

    Source:
        https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
    """

    def __init__(self, run: Pass, tensors: Sequence[Tensor | None]) -> None:
        self.device = next(each.device for each in tensors if each is not None)
        with torch.cuda.device(self.device):  # not necessarily the current device
            side_stream = torch.cuda.Stream()
            side_stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side_stream):
                for _ in range(_WARM_UP):
                    run(*tensors)
            torch.cuda.current_stream().wait_stream(side_stream)
            self.graph = torch.cuda.CUDAGraph()
            # capture this thread only: another thread may be pinning the memory of a batch
            with torch.cuda.graph(self.graph, stream=side_stream, capture_error_mode="thread_local"):
                self.results = run(*tensors)

    def __call__(self) -> None:
        """Launch the graph."""
        with torch.cuda.device(self.device):
            self.graph.replay()


class GraphCache:
    """Captured passes, by the identity of the pass and the shapes of its tensors.

    A captured pass has one block of memory: two passes of the same shape must not run at once in two streams.

    Args:
        max_size: Number of passes to capture; any further pass runs without a graph.
        device: Type of the devices whose passes are captured.
        capture: Captures a pass.
    """

    def __init__(
        self,
        max_size: int = 32,
        device: str = "cuda",
        capture: Callable[[Pass, Sequence[Tensor | None]], CapturedPass] = CUDAGraphPass,
    ) -> None:
        self.max_size, self.device, self.capture = max_size, device, capture
        self.captured: dict[Hashable, tuple[list[Tensor | None], CapturedPass]] = {}

    def accepts(self, tensors: Sequence[Tensor | None]) -> bool:
        """Return whether a pass over these tensors is to be captured."""
        return all(each is None or each.device.type == self.device for each in tensors)

    @torch.inference_mode(mode=False)  # a pass captured here is replayed outside of inference mode
    @torch.no_grad()
    def run(self, key: Hashable, run: Pass, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        """Replay a pass, after capturing it if necessary.

        ``key`` identifies the work of the pass: passes with equal keys treat tensors of equal shapes in the same way.
        The results are copies.
        """
        shapes = tuple(None if each is None else (each.shape, each.dtype, each.device) for each in tensors)
        full_key = (key, shapes, torch.get_float32_matmul_precision())
        if full_key not in self.captured:
            if len(self.captured) >= self.max_size:
                return run(*tensors)
            own = [None if each is None else each.detach().clone() for each in tensors]
            self.captured[full_key] = (own, self.capture(run, own))
        own, replay = self.captured[full_key]
        for mine, theirs in zip(own, tensors, strict=True):
            if mine is not None and theirs is not None:
                mine.copy_(theirs)
        replay()
        return tuple(None if each is None else each.clone() for each in replay.results)


_current: ContextVar[GraphCache | None] = ContextVar("graph_cache", default=None)


def current_graph_cache() -> GraphCache | None:
    """Return the cache of the enclosing :func:`cuda_graphs` block, None outside of one."""
    return _current.get()


@contextmanager
def cuda_graphs(cache: GraphCache | None = None) -> Iterator[GraphCache]:
    """Run kernels as CUDA graphs inside a ``with`` block, where they run on a GPU in full precision.

    Args:
        cache: The cache of an earlier block, to reuse its graphs; a new one when omitted.

    Yields:
        The cache.

    Example:
        >>> import torch
        >>> from unrolled.cells import cuda_graphs, recurrent
        >>> network = recurrent("gru", 8, 16)
        >>> with cuda_graphs() as cache:  # on a CPU nothing is captured
        ...     outputs, _ = network(torch.randn(5, 2, 8))
        >>> len(cache.captured)
        0
    """
    chosen = cache or GraphCache()
    token = _current.set(chosen)
    try:
        yield chosen
    finally:
        _current.reset(token)
