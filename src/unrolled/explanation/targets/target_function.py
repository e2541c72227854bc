"""Call a target that is a function of the model's output; if it fails, the error says so in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from unrolled.errors import UsageError

__all__ = ["called_target"]


def called_target(target: Callable[..., Any], output: object) -> Any:
    """Call a target that is a function.

    Raises:
        UsageError: If it fails on this output.
    """
    try:
        return target(output)
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        shape = f" of shape {tuple(output.shape)}" if isinstance(output, Tensor) else ""
        why = str(error).splitlines()[0] if str(error) else "no message"
        raise UsageError(
            f"the target fails on the model's output, a {type(output).__name__}{shape}: {type(error).__name__}: {why}"
        ) from error
