"""Which position of a network reads each vector, found by gradients.

Weighed by 2 to the power of a digit of the positions' numbers, the gradient of a vector is that power of its position
times the plain gradient. Powers of two pass through operations without rounding, so this holds in any precision. A
vector that several positions read has no such power; it has one in each of several rounds, if it is read once in each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.explanation.even_row import even_row
from unrolled.explanation.tokens.open_rectifiers import open_rectifiers
from unrolled.held_forward.powers_of_two import CLOSE_TO_WHOLE, base_of, digits_of, numbers_told
from unrolled.held_forward.recorded_maps import random_weights

__all__ = ["where_read", "where_read_in_rounds", "with_missing"]


def where_read(leaves: Sequence[Tensor], read: Tensor, inside: Tensor) -> dict[int, Tensor | None]:
    """Find the number of the position that reads each vector of each leaf, t · batch + b, or -1 for none.

    Args:
        leaves: Each of shape (*rows, features).
        read: Shape (time, batch, input), with its graph.
        inside: Whether each position belongs to its sequence, shape (time, batch).

    Returns:
        By the place of the leaf, less those that are not read; None for a leaf that the positions mix. Without a graph
        leaves are matched by value, and all may be read.
    """
    if not leaves or not read.requires_grad:
        return {place: _by_value(leaf, read.detach(), inside) for place, leaf in enumerate(leaves)}
    weights = random_weights(read) * inside[..., None].to(read.device)
    found = _by_gradients(leaves, read, weights)
    if any(where is not None and bool((where < 0).any()) for where in found.values()):
        with open_rectifiers(read) as any_of_them:
            behind = _by_gradients(leaves, read, weights) if any_of_them else found
        others = [where for where in found.values() if where is not None]
        found = {k: _completed(where, behind[k], others) for k, where in found.items()}
    return found


def _by_gradients(leaves: Sequence[Tensor], read: Tensor, weights: Tensor) -> dict[int, Tensor | None]:
    """Answer as :func:`where_read`, by gradients of what is read, weighed."""
    time, batch = read.shape[:2]
    base, unweighed = base_of(read.dtype), torch.zeros(time * batch, dtype=torch.int64, device="cpu")
    digits = digits_of(time * batch, base)
    gradients = [
        torch.autograd.grad(
            torch.ldexp(read * weights, each.view(time, batch, 1).to(read.device)).sum(),
            leaves,
            allow_unused=True,
            retain_graph=True,
        )
        for each in (unweighed, *digits)
    ]
    of_leaves = enumerate(zip(*gradients, strict=True))
    return {k: _numbers(plain, weighed, digits, base) for k, (plain, *weighed) in of_leaves if plain is not None}


def _completed(where: Tensor | None, behind: Tensor | None, others: Sequence[Tensor]) -> Tensor | None:
    """Give vectors that no gradient reaches the positions that read them behind rectified units, where these agree.

    A leaf that no gradient reaches must agree with the others: behind a gate that is shut other positions may read it.
    """
    if where is None or behind is None:
        return where
    known = [where] if bool((where >= 0).any()) else [each for each in others if each.shape == where.shape]
    return where if any(bool((each != behind)[each >= 0].any()) for each in known) else behind


def where_read_in_rounds(leaves: Sequence[Tensor], read: Tensor, inside: Tensor) -> list[dict[int, Tensor | None]]:
    """Answer as :func:`where_read` for each time that all vectors are read; nothing if they are not read so.

    A model may read each vector several times in a row, or the whole text again. One vector that every step reads, as
    that of a class, is no sequence: a gradient for each step would take time proportional to the squared length.
    """
    time, count = len(read), sum(leaf.shape[:-1].numel() for leaf in leaves)
    times, rest = divmod(int(inside.sum()), count) if count else (1, 0)
    if times < 2 or times >= time or rest or not read.requires_grad:
        return []
    steps = torch.arange(time, device=inside.device)[:, None]
    for rounds in (steps % times, steps * times // time):
        found = []
        for number in range(times):
            found.append(where_read(leaves, read, inside & (rounds == number)))
            if any(where is None for where in found[-1].values()):
                break
        else:
            return found
    return []


def with_missing(where: Tensor | None, leaf: Tensor, inside: Tensor) -> Tensor | None:
    """Give vectors without any number the positions that continue those beside them.

    A model that fills in missing numbers (NaN) has no gradient there.

    Args:
        where: Which position reads each vector, as :func:`where_read` says it.
        leaf: The vectors.
        inside: Whether each position belongs to its sequence, shape (time, batch).
    """
    missing = ~leaf.detach().isfinite().any(dim=-1)
    if where is None or not bool(missing.any()):
        return where
    found, free = where.clone(), inside.reshape(-1).cpu().clone()
    free[where[where >= 0]] = False
    for axis in range(where.dim()):
        lines = found.movedim(axis, -1).reshape(-1, where.shape[axis])  # a copy, where the axis is not the last
        for line, absent in zip(lines, missing.movedim(axis, -1).reshape(lines.shape), strict=True):
            _continue(line, absent, free)
        found = lines.view(found.movedim(axis, -1).shape).movedim(-1, axis)
    return found


def _continue(line: Tensor, absent: Tensor, free: Tensor) -> None:
    """Fill in the positions of vectors of one line, if those that are known are an even row."""
    even = even_row(line[:, None])
    if even is None:
        return
    for place in (absent & (line < 0)).nonzero()[:, 0].tolist():
        position = int(even[place, 0])
        if 0 <= position < len(free) and bool(free[position]):
            line[place], free[position] = position, False


def _numbers(plain: Tensor, weighed: Sequence[Tensor], digits: Sequence[Tensor], base: int) -> Tensor | None:
    """Return the number of the position that reads each vector, from its digits; -1 where none does."""
    # entries at the size of rounding have no quotient to speak of
    counts = plain.abs() > 1e-3 * plain.abs().amax(dim=-1, keepdim=True)
    if not weighed:
        return torch.where(counts.any(dim=-1), 0, -1)
    if any(bool((each != 0)[plain == 0].any()) for each in weighed):
        return None
    if not bool(torch.stack(tuple(weighed))[:, counts].isfinite().all()):
        return None  # they overflow
    divisor = plain.to(torch.promote_types(plain.dtype, torch.float32))  # a coarse quotient is near a power by rounding
    number, off = numbers_told(divisor, weighed, [each.to(plain.device) for each in digits], base, CLOSE_TO_WHOLE)
    highest = torch.where(counts, number, -1).amax(dim=-1)
    return None if bool((counts & (off | (number != highest[..., None]))).any()) else highest


def _by_value(leaf: Tensor, read: Tensor, inside: Tensor) -> Tensor | None:
    """Match the vectors that were read with those of a leaf, where no two of them are alike."""
    rows = leaf.detach().reshape(-1, leaf.shape[-1])
    if rows.shape[-1] != read.shape[-1] or rows.dtype != read.dtype:
        return None
    time, batch = read.shape[:2]
    free: dict[bytes, list[int]] = {}
    for place, row in enumerate(_bytes(rows)):
        free.setdefault(row.tobytes(), []).append(place)
    if any(len(each) > 1 for each in free.values()):  # whose places could be any of several
        return None
    where = torch.full((len(rows),), -1, dtype=torch.int64, device="cpu")
    vectors = _bytes(read)
    for t in range(time):
        for b in range(batch):
            if inside[t, b]:
                same = free.get(vectors[t, b].tobytes())
                if not same:
                    return None
                where[same.pop(0)] = t * batch + b
    return where.view(leaf.shape[:-1])


def _bytes(values: Tensor) -> NDArray[np.uint8]:
    """Return the bytes of numbers of any type; numpy has no bfloat16."""
    return values.contiguous().view(torch.uint8).cpu().numpy()
