"""Why the numbers that a model reads have no contributions of their own."""

from __future__ import annotations

from collections.abc import Sequence

from unrolled.errors import UsageError, first_line
from unrolled.held_forward.held_only import held_last
from unrolled.model_runs.nested_tensors import tensors_in

__all__ = [
    "BESIDE_TOKENS",
    "MIXED",
    "NOT_BY_STEPS",
    "SEVERAL",
    "HeldNumbersError",
    "MixedNumbersError",
    "NoNumbersError",
    "NotByStepsError",
    "not_followed",
    "refuse_tokens_only",
]

NOT_BY_STEPS = "no number of an argument reaches the network step by step"
BESIDE_TOKENS = "the model reads token ids beside numbers; unrolled.account tells what each contributes"
_ONLY_INTEGERS = (
    "the arguments hold no floating-point numbers; integers and booleans are read as token ids and masks, so pass "
    "numbers as floating-point tensors"
)
SEVERAL = "the example reads several sequences of one call; unrolled.account tells what each number contributes"
MIXED = "numbers of several steps of the arguments enter one step of the network"


class NoNumbersError(UsageError):
    """A model reads no numbers step by step, or their contributions are not known; the message says why."""


class MixedNumbersError(NoNumbersError):
    """Numbers of several steps enter one step of a network, and which number is of which step is not known."""


class HeldNumbersError(NoNumbersError):
    """What a network reads is made of numbers by operations whose results are held, as a logarithm."""


class NotByStepsError(NoNumbersError):
    """No number of an argument reaches the network step by step.

    Args:
        reads_held: Whether the network reads results that are held.
    """

    def __init__(self, reads_held: bool = False) -> None:
        super().__init__(NOT_BY_STEPS)
        self.reads_held = reads_held

    def naming(self, held_names: Sequence[str]) -> NoNumbersError:
        """Return the error that names what was held, where the network reads it."""
        if not self.reads_held:
            return self
        return HeldNumbersError(f"{self}{held_last(held_names)}; unrolled.account may follow what is held on the way")


def not_followed(error: Exception) -> NoNumbersError:
    """Return the error for a model whose numbers cannot be followed to its network."""
    if isinstance(error, NoNumbersError):
        return error
    return NoNumbersError(f"they cannot be followed to the network: {first_line(error)}")


def refuse_tokens_only(arguments: object) -> None:
    """Refuse arguments that hold no tensor of floating-point numbers with an axis of time.

    Raises:
        NoNumbersError: If they do not.
    """
    if not any(each.is_floating_point() and each.dim() > 0 for each in tensors_in(arguments)):
        raise NoNumbersError(_ONLY_INTEGERS)
