"""Which position of a network reads each vector, found by gradients.

Weighed by the numbers of the positions, the gradient of a vector is its position's number times the plain gradient. A
vector that several positions read has no such number.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["where_read"]

CLOSE = 1e-2
"""How far the number of a position may be from a whole one, in float32 with many terms."""


def where_read(leaves: Sequence[Tensor], read: Tensor, inside: Tensor) -> list[Tensor | None]:
    """For each leaf of vectors the number of the position that reads each of them, t · batch + b, or -1 for none.

    Args:
        leaves: Each of shape (*rows, features).
        read: Shape (time, batch, input), with its graph.
        inside: Whether each position belongs to its sequence, shape (time, batch).

    Returns:
        None for a leaf that the positions mix. A leaf without a gradient is matched by value.
    """
    time, batch = read.shape[:2]
    if not leaves or not read.requires_grad:
        return [_by_value(leaf, read.detach(), inside) for leaf in leaves]
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(read.shape, generator=generator, device="cpu").to(read) + 0.5
    weights = weights * inside[..., None].to(read.device)
    by_step = torch.arange(1, time + 1, device=read.device)[:, None, None]
    by_example = torch.arange(1, batch + 1, device=read.device)[:, None]
    numbers = [read.new_ones(1, 1, 1), by_step, by_example]
    gradients = [
        torch.autograd.grad((read * weights * n.to(read)).sum(), leaves, allow_unused=True, retain_graph=True)
        for n in numbers
    ]
    found: list[Tensor | None] = []
    for leaf, plain, by_time, by_sequence in zip(leaves, *gradients, strict=True):
        if plain is None:
            found.append(_by_value(leaf, read.detach(), inside))
            continue
        t, b = _number(plain, by_time, time), _number(plain, by_sequence, batch)
        found.append(None if t is None or b is None else torch.where(t < 0, -1, t * batch + b))
    return found


def _number(plain: Tensor, weighed: Tensor, count: int) -> Tensor | None:
    """Return which of ``count`` numbers weighed each vector's gradient, from 0; -1 for a vector that is not read."""
    used = plain != 0
    if bool((weighed != 0)[~used].any()):
        return None
    quotient = torch.where(used, weighed / torch.where(used, plain, torch.ones_like(plain)), 0.0)
    number = quotient.round()
    # entries at the size of rounding have no quotient to speak of
    counts = used & (plain.abs() > 1e-3 * plain.abs().amax(dim=-1, keepdim=True))
    wrong = counts & (((quotient - number).abs() > CLOSE) | (number < 1) | (number > count))
    highest = torch.where(counts, number, 0).amax(dim=-1)
    if bool(wrong.any()) or bool((counts & (number != highest[..., None])).any()):
        return None
    return highest.long() - 1


def _by_value(leaf: Tensor, read: Tensor, inside: Tensor) -> Tensor | None:
    """Match the vectors that were read with those of a leaf, where no two of them are alike."""
    rows = leaf.detach().reshape(-1, leaf.shape[-1])
    if rows.shape[-1] != read.shape[-1] or rows.dtype != read.dtype:
        return None
    time, batch = read.shape[:2]
    free: dict[bytes, list[int]] = {}
    for place, row in enumerate(rows.cpu().numpy()):
        free.setdefault(row.tobytes(), []).append(place)
    if any(len(each) > 1 for each in free.values()):  # whose places could be any of several
        return None
    where = torch.full((len(rows),), -1, dtype=torch.int64, device="cpu")
    vectors = read.cpu().numpy()
    for t in range(time):
        for b in range(batch):
            if inside[t, b]:
                same = free.get(vectors[t, b].tobytes())
                if not same:
                    return None
                where[same.pop(0)] = t * batch + b
    return where.view(leaf.shape[:-1])
