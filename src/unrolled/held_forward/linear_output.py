"""An output that is linear in rows: what each row contributed to each example of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import torch
from torch import Tensor

from unrolled.held_forward.powers_of_two import CLOSE_TO_WHOLE, base_of, exponents_of, numbers_told
from unrolled.held_forward.tensor_facts.memory_layout import without_repeats
from unrolled.held_forward.tensor_facts.rows import Row
from unrolled.linalg.finite_sum import has_finite_sum

__all__ = ["LinearOutput"]

_OUTPUT_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}
"""How far a sum may be from the output, relative to the sum of its parts' sizes; 0.02 in other types."""


class LinearOutput:
    """The output of a held forward, differentiated once by all rows.

    Args:
        output: One number for each example, shape (batch,), with its graph.
        leaves: The rows' values.
        keeps: Whether the graph is needed again.
    """

    def __init__(self, output: Tensor, leaves: Sequence[Tensor], keeps: bool = False) -> None:
        self.output, self.leaves, self.batch = output, leaves, len(output)
        self._keeps = keeps or self.batch > 1
        self._contributions: dict[int, Tensor] = {}
        self.gradients = self.differentiate(output.sum())
        """By each row; None where the output does not depend on it."""

    def reads(self, places: Iterable[int]) -> bool:
        """Tell whether the output changes with one of some rows; what it has left out of them has gradients of zero."""
        gradients = (self.gradients[place] for place in places)
        return any(gradient is not None and bool(gradient.any()) for gradient in gradients)

    def reads_held_only(self, places: Iterable[int], rows: Sequence[Row], first: int = 0) -> bool:
        """Tell whether the output reads some leaves by held results only, or not at all.

        Args:
            places: Places of the leaves.
            rows: The rows whose leaves these are, from the leaf ``first`` on.
            first: Place of the first of them.
        """
        reaching = [place for place in places if self.gradients[place] is not None]
        held = (place for place, row in enumerate(rows, first) if row.kind == "held")
        alone = not reaching or (not self.reads(reaching) and self.reads(held))
        return alone and not self._reads_apart(reaching)

    def _reads_apart(self, places: Sequence[int]) -> bool:
        """Tell whether an example's output changes with some rows, though the sum of all examples' may not.

        What is less its mean over the batch sums to zero.
        """
        if self.batch == 1 or not places:
            return False
        gradients = (weighed[place] for weighed in self._weighed for place in places)
        return any(gradient is not None and bool(gradient.any()) for gradient in gradients)

    def held_by_themselves(self, rows: Sequence[Row], first: int = 0) -> frozenset[int]:
        """Return the numbers of the held results that the output reads otherwise than as factors.

        Args:
            rows: The rows whose leaves these are, from the leaf ``first`` on.
            first: Place of the first of them.
        """
        numbered = ((place, row.held) for place, row in enumerate(rows, first) if row.held >= 0)
        return frozenset(held for place, held in numbered if self.reads([place]))

    def differentiate(self, value: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of a function of the output by each row."""
        if not value.requires_grad or not self.leaves:
            return (None,) * len(self.leaves)
        return torch.autograd.grad(value, self.leaves, allow_unused=True, retain_graph=self._keeps)

    def contributions(self, place: int) -> Tensor:
        """Return gradient times value of one row, in the row's shape."""
        if place not in self._contributions:
            gradient = self.gradients[place]
            assert gradient is not None
            self._contributions[place] = _product(gradient, self.leaves[place])
        return self._contributions[place]

    @cached_property
    def _exponents(self) -> list[Tensor]:
        """Exponents for every example: the digits of its number, then those that check what the digits say."""
        return [each.to(self.output.device) for each in exponents_of(self.batch, base_of(self.output.dtype))]

    @cached_property
    def _weighed(self) -> list[tuple[Tensor | None, ...]]:
        """The gradients with the examples weighed by powers of two, once for each of the exponents."""
        ones = torch.ones_like(self.output.detach())
        return [self.differentiate((torch.ldexp(ones, each) * self.output).sum()) for each in self._exponents]

    def examples(self, place: int, of_zeros: bool = False) -> Tensor | None:
        """Return the example that each entry of a row serves, from 0, and -1 where it serves none.

        The quotient of the weighed gradient and the plain one tells the example, whatever axis counts examples and
        whatever order the model put them in. Powers of two pass through a linear graph without rounding, so this holds
        in any precision and for any batch.

        Args:
            place: The place of the row.
            of_zeros: Whether entries that are zero, and so contribute to no example, must serve one alone as well,
                where all are zero.

        Returns:
            Shape of the row; None if one entry serves several examples.
        """
        gradient = self.gradients[place]
        assert gradient is not None
        used = gradient != 0
        weighed = [gradients[place] for gradients in self._weighed]
        known = [each for each in weighed if each is not None]
        if len(known) < len(weighed) or any(bool(each[~used].any()) for each in known):
            return None  # the gradients of several examples cancel
        number, off = numbers_told(gradient, known, self._exponents, base_of(self.output.dtype), CLOSE_TO_WHOLE)
        sizes = self.contributions(place).abs()
        if of_zeros and not bool(sizes.any()):
            sizes = gradient.abs()
        # entries at the size of rounding have no quotient to speak of
        if float(sizes[off].sum()) > torch.finfo(sizes.dtype).eps * float(sizes.sum()):
            return None
        return torch.where(used, number, -1)

    def by_each_example(self, place: int) -> Tensor:
        """Return the contributions of one row to every example, shape (batch, *row): one backward pass an example."""
        found = []
        for one in self.output:
            (gradient,) = torch.autograd.grad(one, self.leaves[place], retain_graph=True, allow_unused=True)
            leaf = self.leaves[place].detach()
            found.append(torch.zeros_like(leaf) if gradient is None else _product(gradient, leaf))
        return torch.stack(found)

    @cached_property
    def axis_counts_examples(self) -> bool:
        """Whether the axis as long as the batch counts examples in every row: then the parts sum to the output.

        The sum may miss the output by the rounding of its parts, however small the output is.
        """
        if self.batch == 1:
            return True
        if any(each is None and g is not None for each, g in zip(self._by_axis, self.gradients, strict=True)):
            return False
        output, known = self.output.detach(), [each for each in self._by_axis if each is not None]
        total = sum(known, torch.zeros_like(output))
        gap, rounding = (total - output).abs(), _OUTPUT_TOLERANCE.get(output.dtype, 0.02)
        if bool((gap <= rounding * sum((each.abs() for each in known), torch.zeros_like(output))).all()):
            return True
        places = [place for place, each in enumerate(self._by_axis) if each is not None]
        sizes = (torch.linalg.vector_norm(self._by_example_axis(place), 1, dim=1) for place in places)
        return bool((gap <= rounding * sum(sizes, torch.zeros_like(output))).all())

    def split(self) -> list[Tensor | None]:
        """Return what each row contributed to every example, each shape (batch,); None for a row that is not used.

        Where no axis can be trusted to count examples, a second backward pass tells them apart.
        """
        if self.axis_counts_examples:
            return self._by_axis
        return [None if g is None else self._by_examples(place) for place, g in enumerate(self.gradients)]

    @cached_property
    def _by_axis(self) -> list[Tensor | None]:
        """Sum each row over all axes but the one that counts examples; None if that is none or several."""
        entries = [self._by_example_axis(place) for place in range(len(self.leaves))]
        return [None if each is None else each.sum(dim=1) for each in entries]

    @cached_property
    def sizes(self) -> Tensor:
        """Σ|gradient · value| over all entries of all rows, shape (batch,): the sizes of the numbers that are added up.

        The sum of a row says less: its entries may cancel, and their rounding stays.
        """
        total = torch.zeros_like(self.output.detach())
        for place, gradient in enumerate(self.gradients):
            if gradient is not None:
                entries = self._by_example_axis(place) if self.axis_counts_examples else None
                total += self._sizes_by_examples(place) if entries is None else entries.abs().sum(dim=1)
        return total

    def _by_example_axis(self, place: int) -> Tensor | None:
        """Return the contributions of a row, shape (batch, entries); None if no axis, or several, count examples."""
        gradient, leaf = self.gradients[place], self.leaves[place].detach()
        if gradient is None:
            return None
        axes = [axis for axis, size in enumerate(leaf.shape) if size == self.batch]
        if self.batch == 1:
            return self.contributions(place).reshape(1, -1)
        if len(axes) != 1:
            return None
        repeated = [axis for axis, stride in enumerate(leaf.stride()) if stride == 0 and axis != axes[0]]
        if not repeated or not has_finite_sum(leaf):
            return _entries(self.contributions(place), axes[0])
        # of a repeated value the gradients are summed first
        return _entries(gradient.sum(dim=repeated, keepdim=True) * without_repeats(leaf), axes[0])

    def _by_examples(self, place: int) -> Tensor:
        """Sum a row by the example that each entry serves."""
        examples = self.examples(place)
        if examples is None:
            return self.by_each_example(place).reshape(self.batch, -1).sum(dim=1)
        return self._added(self.contributions(place), examples)

    def _sizes_by_examples(self, place: int) -> Tensor:
        """Sum the sizes of a row's entries by the example that each serves; those that serve several count for each."""
        sizes, examples = self.contributions(place).abs(), self.examples(place)
        return sizes.sum().expand(self.batch) if examples is None else self._added(sizes, examples)

    def _added(self, values: Tensor, examples: Tensor) -> Tensor:
        """Add up the entries of a row by their examples, shape (batch,)."""
        found = values.new_zeros(self.batch)
        return found.index_add_(0, examples.reshape(-1).clamp_min(0), values.reshape(-1))


def _entries(contributions: Tensor, axis: int) -> Tensor:
    """Put one axis in front of all others, which become one."""
    return contributions.movedim(axis, 0).flatten(1) if contributions.dim() > 1 else contributions[:, None]


def _product(gradient: Tensor, leaf: Tensor) -> Tensor:
    """Multiply; what is not used contributes nothing, though it be infinite (a masked score)."""
    product = gradient * leaf.detach()
    return product if has_finite_sum(product) else product.masked_fill_(gradient == 0, 0.0)
