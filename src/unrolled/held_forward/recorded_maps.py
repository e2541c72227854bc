r"""Linear maps between two tensors of a held forward, read from the graph that autograd recorded.

The transpose of a recorded map is one backward pass. The map itself is the transpose of that: Jv is the derivative of
c ↦ Jᵀc along v. Where every position of a result reads one position of its source, the map has a matrix for each
position: most often each feature reads one feature (dropout, a slice, a scale), else the matrix is stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

__all__ = [
    "DenseMap",
    "PositionMap",
    "SelectionMap",
    "image",
    "position_map",
    "pull_back",
    "random_like",
    "random_weights",
    "readers",
]

_ROUNDINGS = 8
"""How many roundings a map may be off the recorded one that it is read from."""


def pull_back(result: Tensor, sources: Sequence[Tensor], covector: Tensor) -> list[Tensor | None]:
    """Compute Jᵀc for each source; None for one that the result does not depend on."""
    if not result.requires_grad or not sources:
        return [None] * len(sources)
    return list(torch.autograd.grad(result, sources, covector, retain_graph=True, allow_unused=True))


def image(result: Tensor, sources: Sequence[Tensor], values: Sequence[Tensor]) -> Tensor:
    """Compute Σ J v over the sources: the part of a result that these values of its sources make."""
    if not result.requires_grad or not sources:
        return torch.zeros_like(result)
    with torch.enable_grad():
        covector = torch.zeros_like(result).requires_grad_()
        back = torch.autograd.grad(result, sources, covector, create_graph=True, allow_unused=True)
        used = [(b, v.detach()) for b, v in zip(back, values, strict=True) if b is not None and b.requires_grad]
        if not used:
            return torch.zeros_like(result)
        parts, along = zip(*used, strict=True)
        (found,) = torch.autograd.grad(parts, covector, along, allow_unused=True)
    return torch.zeros_like(result) if found is None else found


def readers(result: Tensor, sources: Sequence[Tensor]) -> list[Tensor | None]:
    """Find which position of a result reads each position of its sources.

    Positions are those of all axes but the last, counted in one. They are numbered in binary: for each bit, one
    backward pass shows what is read where the bit is set, and one what is read where it is not.

    Returns:
        For each source the shape (positions of the source,), -1 for what is not read; None if two positions of the
        result read the same, or one reads two.
    """
    count = result.shape[:-1].numel()
    numbers = torch.arange(count, device=result.device).reshape(*result.shape[:-1], 1)
    probe = random_like(result)
    passes = []
    for bit in range(max(1, (count - 1).bit_length())):
        has = (numbers >> bit) & 1
        passes.append([pull_back(result, sources, probe * (has == wanted)) for wanted in (1, 0)])
    return [_readers(source, [(one[k], zero[k]) for one, zero in passes]) for k, source in enumerate(sources)]


def _readers(source: Tensor, passes: Sequence[tuple[Tensor | None, Tensor | None]]) -> Tensor | None:
    """Put the bits of one source's readers together: by bit, its gradients by the positions with and without it."""
    found = torch.zeros(source.shape[:-1].numel(), dtype=torch.int64, device=source.device)
    read = torch.zeros_like(found, dtype=torch.bool)
    for bit, gradients in enumerate(passes):
        one, zero = (torch.zeros_like(read) if g is None else g.ne(0).any(dim=-1).reshape(-1) for g in gradients)
        if bool((one & zero).any()):
            return None
        found += one.long() << bit
        read |= one | zero
    taken = found[read]
    if len(taken.unique()) < len(taken):
        return None
    return torch.where(read, found, -1)


class PositionMap(ABC):
    """A linear map of the features at each position, on blocks of shape (columns, batch, features)."""

    @abstractmethod
    def at(self, time: int) -> PositionMap:
        """Return the map of one step."""

    @abstractmethod
    def apply(self, block: Tensor) -> Tensor:
        """Map a block, or one vector for each position."""

    @abstractmethod
    def apply_transpose(self, block: Tensor) -> Tensor:
        """Map a block of covectors back."""


@dataclass(frozen=True)
class SelectionMap(PositionMap):
    """Every feature of the result is one feature of the source, times a number."""

    index: Tensor
    """Which feature each one reads, shape (m,)."""
    weight: Tensor
    """Shape (…, batch, m); zero for a feature that reads none."""
    size: int
    """Number of features of the source."""

    def at(self, time: int) -> SelectionMap:
        """Return the map of one step."""
        return replace(self, weight=self.weight[time])

    def apply(self, block: Tensor) -> Tensor:
        """Map a block."""
        return block[..., self.index] * self.weight

    def apply_transpose(self, block: Tensor) -> Tensor:
        """Map a block of covectors back."""
        scaled = block * self.weight
        return scaled.new_zeros(*scaled.shape[:-1], self.size).index_add_(-1, self.index, scaled)


@dataclass(frozen=True)
class DenseMap(PositionMap):
    """A matrix for each position."""

    matrix: Tensor
    """Shape (…, batch, m, n)."""

    def at(self, time: int) -> DenseMap:
        """Return the map of one step."""
        return DenseMap(self.matrix[time])

    def apply(self, block: Tensor) -> Tensor:
        """Map a block."""
        return (self.matrix @ block[..., None])[..., 0]

    def apply_transpose(self, block: Tensor) -> Tensor:
        """Map a block of covectors back."""
        return (self.matrix.mT @ block[..., None])[..., 0]


def position_map(result: Tensor, sources: Sequence[Tensor], align: Callable[[Sequence[Tensor]], Tensor]) -> PositionMap:
    """Read the map of every position.

    Args:
        result: Shape (…, m), each position of which reads one position of one source.
        sources: Of any shapes, n features last.
        align: Takes tensors in the sources' shapes to shape (…, n): what each position of the result reads.
    """

    def back(covector: Tensor) -> Tensor:
        found = zip(pull_back(result, sources, covector), sources, strict=True)
        return align([torch.zeros_like(source) if gradient is None else gradient for gradient, source in found])

    found = _selection(result, sources[0].shape[-1], back)
    if found is not None:
        return found
    rows = [back(row.expand(result.shape)) for row in torch.eye(result.shape[-1], device=result.device).to(result)]
    return DenseMap(torch.stack(rows, dim=-2))


def _selection(result: Tensor, size: int, back: Callable[[Tensor], Tensor]) -> SelectionMap | None:
    """Read a map that selects features; None if it does not."""
    # a covector of ones gives the weight with which each feature is read, one of 1, 2, 3 … the number of its reader
    count = result.shape[-1]
    ramp = torch.arange(1, count + 1, device=result.device).to(result)
    weights, numbered = back(torch.ones_like(result)), back(ramp.expand(result.shape))
    used = weights != 0
    reader = torch.where(used, numbered / torch.where(used, weights, torch.ones_like(weights)), 0.0).round().long()
    highest = reader.reshape(-1, size).amax(dim=0)
    features = (highest > 0).nonzero()[:, 0]
    if bool((highest > count).any()) or len(highest[features].unique()) < len(features):
        return None
    index = torch.zeros(count, dtype=torch.int64, device=result.device)
    index[highest[features] - 1] = features
    weight = torch.zeros_like(result)
    weight[..., highest[features] - 1] = weights[..., features]
    found = SelectionMap(index, weight, size)
    probe = random_like(result)
    gap = (found.apply_transpose(probe) - back(probe)).abs().max()
    limit = _ROUNDINGS * torch.finfo(result.dtype).eps * float(probe.abs().max()) * max(1.0, float(weight.abs().max()))
    return found if float(gap) <= limit else None


def random_like(like: Tensor, seed: int = 0) -> Tensor:
    """Draw normal numbers in the form of a tensor, whatever the state of torch's generators is."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(like.shape, generator=generator, dtype=torch.float64, device="cpu").to(like)


def random_weights(like: Tensor, seed: int = 0) -> Tensor:
    """Draw numbers from ½ to 1½ in the form of a tensor: of a sum that they weigh no terms cancel by chance."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(like.shape, generator=generator, device="cpu").to(like) + 0.5
