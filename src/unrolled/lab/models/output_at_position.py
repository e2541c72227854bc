"""A model with an output for every position, read at one of them."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from unrolled.errors import UsageError

__all__ = ["OutputAtPosition", "checked_position"]


class OutputAtPosition(nn.Module):
    """Return the output of a model at one position, as if the model classified the sequence.

    Args:
        model: A model with outputs of shape (batch, time, outputs).
        position: The position, from 0; negative positions count from the end.
    """

    def __init__(self, model: nn.Module, position: int) -> None:
        super().__init__()
        self.model = model
        self.position = position

    def forward(self, *inputs: Tensor) -> Tensor:
        """Call the model; return shape (batch, outputs)."""
        return self.model(*inputs)[:, self.position]


def checked_position(tokens: Sequence[str], at: int | None) -> int:
    """Check a position that a user asks for, from 0; None is the last.

    Raises:
        UsageError: There are no tokens, or the position is outside them.
    """
    if not tokens:
        raise UsageError("the sentence is empty; expected at least one word")
    if at is None:
        return len(tokens) - 1
    if not 0 <= at < len(tokens):
        raise UsageError(f"at is {at}; expected 0 to {len(tokens) - 1}, a token of: {' '.join(tokens)}")
    return at
