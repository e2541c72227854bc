r"""The hidden size of a network for a given number of parameters.

Experiments compare cells at equal parameter counts. The count includes what a language model trains: the cells
with all biases and, for a vocabulary of V words, the embedding (V·e numbers) and the softmax layer (V·n + V, with n the
length of the top layer's output). It is taken from the real module, built without storage.

Source:
    Second-order RNNs, section 5.3 and table 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import torch

from unrolled.cells import recurrent
from unrolled.errors import UsageError

__all__ = ["Fit", "Sized", "count_parameters", "fit_parameters", "parse_count"]

_LARGEST = 10**12
"""Largest budget: a larger number is a typing error."""
_SUFFIXES = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9}
"""What may stand behind a count, and what it multiplies by."""


@dataclass(frozen=True)
class Sized:
    """The parameter counts of a network of one hidden size."""

    hidden_size: int
    network: int
    embedding: int
    output: int

    @property
    def parameters(self) -> int:
        """The total."""
        return self.network + self.embedding + self.output


@dataclass(frozen=True)
class Fit:
    """The two hidden sizes on either side of a number of parameters."""

    budget: int
    below: Sized
    """The largest size that does not exceed the budget."""
    above: Sized
    """The next size."""

    @property
    def nearest(self) -> Sized:
        """The size nearer to the budget; the smaller one of two at the same distance."""
        return min((self.below, self.above), key=lambda sized: abs(sized.parameters - self.budget))


def parse_count(text: str) -> int:
    """Parse a number of parameters such as ``4.5M``, ``350k`` or ``1_000_000``.

    Raises:
        UsageError: If it is not a positive whole number, or larger than 10¹².

    Example:
        >>> parse_count("4.5M"), parse_count("350k"), parse_count("1_000_000")
        (4500000, 350000, 1000000)
    """
    found = re.fullmatch(r"(\d+(?:_\d+)*(?:\.\d+)?)([kKmMbB]?)", text.strip(), re.ASCII)
    number = Decimal(found[1].replace("_", "")) * _SUFFIXES[found[2].lower()] if found else Decimal(0)
    if number < 1 or number != int(number):
        raise UsageError(f"{text!r} is not a number of parameters; expected one such as 4.5M, 350k or 1_000_000")
    if number > _LARGEST:
        raise UsageError(f"{text} parameters; expected at most {_LARGEST:,}")
    return int(number)


def count_parameters(
    cell: str,
    input_size: int,
    hidden_size: int,
    num_layers: int = 1,
    bidirectional: bool = False,
    vocabulary: int = 0,
) -> Sized:
    """Count the parameters of a network of the cells named ``cell``.

    Args:
        cell: Name of the cell.
        input_size: Length of each input vector.
        hidden_size: Number of units in each layer and direction.
        num_layers: Number of layers.
        bidirectional: Whether each layer has a second, backward direction.
        vocabulary: Number V of words that are embedded and predicted; 0 counts the network alone.

    Raises:
        UsageError: If the vocabulary is negative.
    """
    if vocabulary < 0:
        raise UsageError(f"vocabulary is {vocabulary}; expected 0 or more")
    with torch.device("meta"):
        network = recurrent(cell, input_size, hidden_size, num_layers, bidirectional)
    return Sized(
        hidden_size,
        network=sum(parameter.numel() for parameter in network.parameters()),
        embedding=vocabulary * input_size,
        output=vocabulary * (network.output_size + 1),
    )


def fit_parameters(
    cell: str,
    budget: int,
    input_size: int,
    num_layers: int = 1,
    bidirectional: bool = False,
    vocabulary: int = 0,
) -> Fit:
    """Find the hidden sizes whose parameter counts are next to ``budget``.

    The other arguments are those of :func:`count_parameters`.

    Raises:
        UsageError: If the budget is too small for one unit, or the count does not depend on the hidden size.
    """

    def sized(units: int) -> Sized:
        return count_parameters(cell, input_size, units * grain, num_layers, bidirectional, vocabulary)

    grain = _grain(cell, input_size)
    smallest = sized(1)
    if smallest.parameters > budget:
        size = "one unit has" if grain == 1 else f"{grain} units, the smallest size, have"
        raise UsageError(
            f"a budget of {budget:,} parameters is too small for {cell}: {size} "
            f"{smallest.parameters:,}; choose at least that many"
        )
    if sized(2).parameters == smallest.parameters:
        raise UsageError(
            f"a {cell} cell has {smallest.parameters:,} parameters for every hidden size; choose another cell"
        )
    return _bisect(budget, sized)


def _grain(cell: str, input_size: int) -> int:
    """Return the smallest hidden size: 1, or the input size for cells whose state holds whole inputs."""
    try:
        count_parameters(cell, input_size, 1)
    except UsageError:
        count_parameters(cell, input_size, input_size)  # raises any other error
        return input_size
    return 1


def _bisect(budget: int, sized: Callable[[int], Sized]) -> Fit:
    """Search the sizes by bisection; the first one is known to be within the budget."""
    low, high = 1, 2
    while sized(high).parameters <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sized(middle).parameters <= budget else (low, middle)
    return Fit(budget, sized(low), sized(high))
