r"""Convert batches of sequences between torch.nn's forms and one form of our own.

Our own form is (time, batch, features) with lengths. A user's batch may be batch first, unbatched, padded or packed,
and an initial state is h_0 or (h_0, c_0), with layers and directions stacked. Padding is set to zero on the way in, so
that its content cannot reach a result, and on the way out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from unrolled.errors import ShapeError, UsageError, kind_of

__all__ = ["InitialState", "Layout", "Lengths", "checked_state", "flat_states", "read_batch", "reversal"]

InitialState = Tensor | tuple[Tensor, Tensor] | None
"""A state in torch.nn's form: h_0, or (h_0, c_0) where c_0 is the part of a state that is not hidden output."""

Lengths = Tensor | Sequence[int] | None
"""The lengths of the sequences of a padded batch; None if all have the padded length."""


def reversal(lengths: Tensor, time: int) -> Tensor:
    """Return the index, shape (time, batch), that reverses each sequence within its length; it is its own inverse."""
    steps = torch.arange(time, device=lengths.device)[:, None]
    backward = lengths[None, :] - 1 - steps
    return torch.where(backward >= 0, backward, steps)


@dataclass(frozen=True)
class Layout:
    """The form of one batch of a user."""

    lengths: Tensor
    """Shape (batch,)."""
    time: int
    """The padded length."""
    ragged: bool = False
    """Whether a sequence ends before the padded length; known, so that no device is waited for."""
    batch_first: bool = False
    unbatched: bool = False
    packed: PackedSequence | None = None
    """The packed sequence, if the batch was one."""

    @property
    def inside(self) -> Tensor:
        """Whether each position is inside its sequence, shape (time, batch)."""
        return torch.arange(self.time, device=self.lengths.device)[:, None] < self.lengths

    def blank(self, values: Tensor) -> Tensor:
        """Set padding to zero, even where it is NaN: a product with zero would not."""
        if not self.ragged:
            return values
        return torch.where(self.inside[..., None], values, torch.zeros_like(values))

    def reverse(self, values: Tensor, axis: int = 0) -> Tensor:
        """Reverse each sequence within its own length along the axis of steps; padding stays in place.

        The axis of sequences is the last but one.
        """
        if not self.ragged:
            return values.flip(axis)
        shape = [1] * values.dim()
        shape[axis], shape[-2] = self.time, len(self.lengths)
        return values.gather(axis, reversal(self.lengths, self.time).view(shape).expand(values.shape))

    def turn(self, values: Tensor, direction: int, axis: int = 0) -> Tensor:
        """Take values from token order to the order in which a direction reads, or back: 1 reverses, 0 does not."""
        return self.reverse(values, axis) if direction else values

    def in_token_order(self, directions: Sequence[Tensor]) -> Tensor:
        """Put what one or two directions gave, each in the order in which it reads, side by side in token order."""
        found = [self.turn(values, direction) for direction, values in enumerate(directions)]
        return found[0] if len(found) == 1 else torch.cat(found, dim=-1)

    def last(self, values: Tensor) -> Tensor:
        """Return the values at the end of each sequence, shape (batch, features)."""
        if not self.ragged:
            return values[-1]
        return values[self.lengths - 1, torch.arange(len(self.lengths), device=values.device)]

    def restore(self, values: Tensor) -> Tensor | PackedSequence:
        """Convert values, shape (time, batch, features), to the user's form; padding is zero."""
        if self.packed is not None:
            order, sizes = self.packed.sorted_indices, self.packed.batch_sizes
            values = values if order is None else values[:, order]
            data = torch.cat([values[t, :size] for t, size in enumerate(sizes.tolist())])
            return PackedSequence(data, sizes, order, self.packed.unsorted_indices)
        values = self.blank(values)
        if self.unbatched:
            return values[:, 0]
        return values.transpose(0, 1) if self.batch_first else values


def read_batch(
    inputs: Tensor | PackedSequence, size: int, batch_first: bool, lengths: Lengths
) -> tuple[Tensor, Layout]:
    """Convert a user's inputs to shape (time, batch, input), with padding set to zero; return their form as well.

    Args:
        inputs: Padded, unbatched or packed.
        size: Length of an input vector.
        batch_first: Whether padded inputs have shape (batch, time, input).
        lengths: Lengths of the sequences in a padded batch, shape (batch,), in any order.

    Raises:
        ShapeError: If inputs or lengths have a wrong shape.
        UsageError: If the inputs are not a tensor, a length is out of range, or a packed sequence comes with lengths.
    """
    if isinstance(inputs, PackedSequence):
        if lengths is not None:
            raise UsageError("lengths were given with a packed sequence, which has its own: leave out the argument")
        padded, own = pad_packed_sequence(inputs)
        if padded.dim() != 3 or padded.shape[-1] != size:
            raise ShapeError(f"packed inputs have shape {tuple(inputs.data.shape)}; expected (tokens, {size})")
        return padded, Layout(
            own.to(padded.device), len(padded), int(own.min()) < len(padded), batch_first, packed=inputs
        )
    if not isinstance(inputs, Tensor):
        raise UsageError(f"the inputs are {kind_of(inputs)}; expected a tensor or a packed sequence")
    if inputs.dim() not in (2, 3) or inputs.shape[-1] != size:
        axes = "batch, time" if batch_first else "time, batch"
        raise ShapeError(f"inputs have shape {tuple(inputs.shape)}; expected ({axes}, {size})")
    unbatched = inputs.dim() == 2
    if unbatched:
        inputs = inputs.unsqueeze(1)
    elif batch_first:
        inputs = inputs.transpose(0, 1)
    time, batch = inputs.shape[:2]
    if time == 0 or batch == 0:
        lacks = "token" if batch else "sequence"
        raise ShapeError(f"inputs have {batch} sequences of {time} tokens; expected at least one {lacks}")
    if lengths is None:
        full = torch.full((batch,), time, device=inputs.device)
        return inputs, Layout(full, time, False, batch_first, unbatched)
    given = _whole(lengths, batch).to(inputs.device)
    shortest, longest = int(given.min()), int(given.max())
    if shortest < 1 or longest > time:
        raise UsageError(f"lengths run from {shortest} to {longest}; expected 1 to {time}")
    layout = Layout(given, time, shortest < time, batch_first, unbatched)
    return layout.blank(inputs), layout


def _whole(lengths: Tensor | Sequence[int], batch: int) -> Tensor:
    """Convert lengths of any integer type, in a tensor or a sequence, to int64, apart from the caller's."""
    try:
        given = lengths if isinstance(lengths, Tensor) else torch.as_tensor(lengths, device="cpu")
    except (TypeError, ValueError, RuntimeError, OverflowError):
        shown = " ".join(repr(lengths).split())[:80]  # one line of it
        raise ShapeError(f"lengths are {shown}; expected ({batch},) whole numbers") from None
    real = given.is_floating_point() or given.is_complex() or given.dtype == torch.bool
    if given.shape != (batch,) or real:
        kind = f"{tuple(given.shape)}, {given.dtype}"
        raise ShapeError(f"lengths have shape {kind}; expected ({batch},) whole numbers")
    return given.to(torch.int64, copy=True)


def checked_state(state: InitialState, count: int, batch: int, hidden: int, rest: int) -> InitialState:
    """Check the shape of an initial state, and give it a batch axis where it has none.

    Args:
        state: In torch.nn's form.
        count: Number of layers times directions.
        batch: Number of sequences.
        hidden: Length of the hidden output.
        rest: Length of the part of a state that is not hidden output; 0 if the state is h_0 alone.

    Returns:
        The state, each part of shape (count, batch, …).

    Raises:
        ShapeError: If the state does not fit.
    """
    if state is None:
        return None
    if isinstance(state, tuple) != bool(rest):
        expected = "(h_0, c_0)" if rest else "h_0"
        raise ShapeError(f"the state is {kind_of(state)}; expected {expected}")
    given: tuple[Tensor, ...] = state if isinstance(state, tuple) else (state,)
    names = ("h_0", "c_0") if rest else ("h_0",)
    if len(given) != len(names):
        raise ShapeError(f"the state is a tuple of {len(given)}; expected ({', '.join(names)})")
    parts = []
    for label, part, size in zip(names, given, (hidden, rest), strict=False):
        if not isinstance(part, Tensor):
            raise ShapeError(f"{label} is {kind_of(part)}; expected a tensor of shape {(count, batch, size)}")
        part = part.unsqueeze(1) if part.dim() == 2 else part
        if part.shape != (count, batch, size):
            raise ShapeError(f"{label} has shape {tuple(part.shape)}; expected {(count, batch, size)}")
        parts.append(part)
    return (parts[0], parts[1]) if rest else parts[0]


def flat_states(state: InitialState, count: int) -> list[Tensor | None]:
    """Split a checked state into one flat state for each layer and direction, shape (batch, state), hidden output last.

    Each is None if the state is None: the cell then uses its own initial state.
    """
    if state is None:
        return [None] * count
    return list(torch.cat(state[::-1], dim=-1) if isinstance(state, tuple) else state)
