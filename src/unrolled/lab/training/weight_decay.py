"""Weight decay on matrices alone, as parameter groups of an optimiser."""

from __future__ import annotations

from typing import TypedDict

from torch import nn

from unrolled.errors import UsageError

__all__ = ["Group", "decay_groups"]


class Group(TypedDict):
    """Parameters that an optimiser treats alike."""

    params: list[nn.Parameter]
    weight_decay: float


def decay_groups(model: nn.Module, decay: float) -> list[Group]:
    """Share out a model's parameters: matrices decay, embeddings among them; biases and gains do not.

    A network whose weights decay stays nearer to its first-order expansion: from 1e-5 to 3e-4 the error of a step falls
    by a third in Implicit n-grams, appendix B.2.

    Args:
        model: whose parameters are to be optimised.
        decay: the coefficient.

    Returns:
        Two groups, to be given to an optimiser in place of the parameters; none of them is empty.

    Raises:
        UsageError: when the coefficient is negative.

    Example:
        >>> import torch
        >>> optimiser = torch.optim.Adagrad(decay_groups(torch.nn.GRU(8, 16), decay=3e-4))
    """
    if not decay >= 0:
        raise UsageError(f"decay is {decay}; expected 0 or more")
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups: list[Group] = [
        {"params": [p for p in trained if p.dim() > 1], "weight_decay": decay},
        {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]
