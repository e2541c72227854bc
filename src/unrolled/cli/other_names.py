"""Names that other libraries give to settings whose name here is not near enough to be found by its letters."""

from __future__ import annotations

from collections.abc import Container

__all__ = ["name_here"]

_NAMES = {
    "learning_rate": "lr",
    "eta": "lr",
    "val": "dev",
    "valid": "dev",
    "validation": "dev",
    "model": "encoder",
    "cell": "encoder",
    "rnn": "encoder",
    "architecture": "encoder",
    "units": "hidden",
    "l2": "weight_decay",
    "random_state": "seed",
}


def name_here(given: str, known: Container[str]) -> str | None:
    """Return what a setting is called here, with _, if it is known; None for any other name.

    Example:
        >>> name_here("--learning-rate", ("hidden", "lr"))
        'lr'
    """
    name = _NAMES.get(given.removeprefix("--").replace("-", "_").lower())
    return name if name is not None and name in known else None
