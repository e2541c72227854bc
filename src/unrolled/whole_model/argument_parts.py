"""What each argument contributed to one example of an account, with the names of its tokens, steps and features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from torch import Tensor

from unrolled.whole_model.accounted_output import AccountedOutput
from unrolled.whole_model.example_axis import without_example_axis

__all__ = ["ArgumentPart", "argument_parts"]


@dataclass(frozen=True)
class ArgumentPart:
    """The contributions of one argument."""

    name: str
    is_text: bool
    values: Tensor
    """Of a text one for each token, else shape (steps …, features), without steps where the example is no sequence."""
    words: tuple[str, ...] = ()
    """Names of the tokens or steps; empty where they are not known."""
    features: tuple[str, ...] = ()
    """Names of the numbers of a step; empty where they were not given."""


def argument_parts(one: AccountedOutput) -> Iterator[ArgumentPart]:
    """Go through the arguments of an account of one example: texts first, as its words are those of its texts."""
    words = one.words[0] if one.words else ()
    for name, part in one.texts.items():
        values = part.reshape(-1)
        yield ArgumentPart(name, True, values, words[: len(values)])
        words = words[len(values) :]
    for name, part in one.features.items():
        values = without_example_axis(part, one.axes.get(name))
        steps = prod(values.shape[:-1]) if values.dim() > 1 else 0
        yield ArgumentPart(name, False, values, words if len(words) == steps else (), one.feature_names.get(name, ()))
