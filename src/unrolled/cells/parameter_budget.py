r"""How large a network may be for a number of parameters.

Sizes are compared at equal parameters. What is counted is what a language model trains: the cells with all their
biases and, where a vocabulary is given, the embedding (V·e numbers) and the softmax layer (V·n + V, with n the
length of the top layer's output). The count is that of the real module, built without storage.

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

__all__ = ["Fit", "Sized", "count_parameters", "fit_parameters", "read_count"]

LARGEST = 10**12
SUFFIXES = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9}


@dataclass(frozen=True)
class Sized:
    """A network of some size, and how many parameters that makes."""

    hidden_size: int
    network: int
    embedding: int
    output: int

    @property
    def parameters(self) -> int:
        """All of them."""
        return self.network + self.embedding + self.output


@dataclass(frozen=True)
class Fit:
    """The two sizes on either side of a budget."""

    budget: int
    below: Sized
    """The largest that does not exceed it."""
    above: Sized
    """The next one."""

    @property
    def nearest(self) -> Sized:
        """Whichever is nearer to the budget; the smaller of two as near."""
        return min((self.below, self.above), key=lambda sized: abs(sized.parameters - self.budget))


def read_count(text: str) -> int:
    """Read a number as people write numbers of parameters.

    Args:
        text: such as ``4.5M``, ``350k``, ``1_000_000``.

    Returns:
        The number.

    Raises:
        UsageError: when it is no positive whole number, or larger than 10¹².

    Example:
        >>> read_count("4.5M"), read_count("350k"), read_count("1_000_000")
        (4500000, 350000, 1000000)
    """
    found = re.fullmatch(r"(\d+(?:_\d+)*(?:\.\d+)?)([kKmMbB]?)", text.strip(), re.ASCII)
    number = Decimal(found[1].replace("_", "")) * SUFFIXES[found[2].lower()] if found else Decimal(0)
    if number < 1 or number != int(number):
        raise UsageError(f"{text!r} is no number of parameters; expected one such as 4.5M, 350k or 1_000_000")
    if number > LARGEST:
        raise UsageError(f"{text} parameters; expected at most {LARGEST:,}")
    return int(number)


def count_parameters(
    cell: str,
    input_size: int,
    hidden_size: int,
    num_layers: int = 1,
    bidirectional: bool = False,
    vocabulary: int = 0,
) -> Sized:
    """Count the parameters of a network.

    Args:
        cell: a cell's name.
        input_size: e.
        hidden_size: d, for each layer and direction.
        num_layers: how many layers.
        bidirectional: whether each layer reads both ways.
        vocabulary: V, how many words are embedded and predicted; 0 for the network alone.

    Returns:
        The counts.

    Raises:
        UsageError: when the vocabulary is negative.
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
    """Find the hidden size for a number of parameters.

    Args:
        cell: a cell's name.
        budget: how many parameters there are to be.
        input_size: e.
        num_layers: how many layers.
        bidirectional: whether each layer reads both ways.
        vocabulary: V, how many words are embedded and predicted; 0 for the network alone.

    Returns:
        The sizes next to the budget.

    Raises:
        UsageError: when the budget is too small for one unit, or the size does not depend on it.
    """

    def sized(units: int) -> Sized:
        return count_parameters(cell, input_size, units * grain, num_layers, bidirectional, vocabulary)

    grain = _grain(cell, input_size)
    smallest = sized(1)
    if smallest.parameters > budget:
        size = "one unit" if grain == 1 else f"{grain} units, the fewest there can be,"
        raise UsageError(
            f"a budget of {budget:,} parameters is too small for {cell}: {size} of it has "
            f"{smallest.parameters:,}; expected at least that"
        )
    if sized(2).parameters == smallest.parameters:
        raise UsageError(
            f"a {cell} cell has {smallest.parameters:,} parameters whatever its size; expected another cell"
        )
    return _bisect(budget, sized)


def _grain(cell: str, input_size: int) -> int:
    """How many units are the fewest: one, or as many as there are inputs for cells that hold whole slots."""
    try:
        count_parameters(cell, input_size, 1)
    except UsageError:
        count_parameters(cell, input_size, input_size)  # says what else is wrong, if anything
        return input_size
    return 1


def _bisect(budget: int, sized: Callable[[int], Sized]) -> Fit:
    """Search the sizes, of which the first is known to be within the budget."""
    low, high = 1, 2
    while sized(high).parameters <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sized(middle).parameters <= budget else (low, middle)
    return Fit(budget, sized(low), sized(high))
