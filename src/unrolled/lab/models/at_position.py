"""A model of every position, read at one of them."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from unrolled.errors import UsageError

__all__ = ["OutputAtPosition", "checked_position"]


class OutputAtPosition(nn.Module):
    """Read what a model says at one position, as if it classified the sequence.

    Args:
        model: gives shape (batch, time, outputs).
        position: which; negative ones count from the end.
    """

    def __init__(self, model: nn.Module, position: int) -> None:
        super().__init__()
        self.model = model
        self.position = position

    def forward(self, *inputs: Tensor) -> Tensor:
        """Call the model.

        Args:
            *inputs: as the model takes them.

        Returns:
            Shape (batch, outputs).
        """
        return self.model(*inputs)[:, self.position]


def checked_position(tokens: Sequence[str], at: int | None) -> int:
    """Check a position that a user asked for.

    Args:
        tokens: of the text.
        at: from 0; the last when None.

    Returns:
        The position.

    Raises:
        UsageError: when there is no token, or none at that position.
    """
    if not tokens:
        raise UsageError("the sentence is empty; expected at least one word")
    if at is None:
        return len(tokens) - 1
    if not 0 <= at < len(tokens):
        raise UsageError(f"at is {at}; expected 0 to {len(tokens) - 1}, a token of: {' '.join(tokens)}")
    return at
