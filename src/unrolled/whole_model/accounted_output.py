"""An output, what each source contributed to it, and how much of it is left over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from unrolled.decomposition.attribution.attribution import CLOSES
from unrolled.decomposition.attribution.number_notes import cancellation_note
from unrolled.decomposition.attribution.own_memory import OwnMemory
from unrolled.errors import UsageError
from unrolled.held_forward.operations.coarsest_type import coarsest_type
from unrolled.whole_model.example_axis import keep_example, rows_by_example
from unrolled.whole_number import whole_number

__all__ = ["AccountedOutput"]


@dataclass(frozen=True, repr=False, eq=False)
class AccountedOutput(OwnMemory):
    r"""One output of each example, and what every token, feature, bias and initial state contributed to it.

    .. math:: \text{output} = \text{tokens} + \text{features} + \text{initial states} + \text{biases}
        + \text{constants} + \text{remainder}
    """

    target: str
    """Name of the output: ``"output 1"``, or a class; ``"the predicted class"`` of a batch, whose examples have it."""
    expansion: str
    """How recurrent networks were expanded."""
    exact: bool
    """Whether that expansion is exact."""
    texts: Mapping[str, Tensor]
    """What each token contributed, by argument (its place or name), in the argument's shape."""
    features: Mapping[str, Tensor]
    """What each number contributed, by argument, in the argument's shape; also of integers that are used as numbers."""
    initial: Tensor
    """Initial states other than zero, shape (batch,)."""
    biases: Mapping[str, Tensor]
    """What each parameter that is added to value contributed, by its name, each (batch,)."""
    constants: Mapping[str, Tensor]
    """Numbers that the code adds, results that are held, by the operation's name, and vectors at ids that
    cannot be followed to single tokens; each (batch,)."""
    output: Tensor
    """The output of the model, shape (batch,)."""
    passed: Tensor
    """Σ|c| over every number that contributed, those of one bias or argument apart, shape (batch,): their rounding is
    the least that a remainder can be."""
    coarsest: torch.dtype = torch.float64
    """The type of least precision in which the model computed any part of it."""
    axes: Mapping[str, int | None] = field(default_factory=dict)
    """For each argument the axis that counts examples, in the order of the output; None for a single example."""
    words: tuple[tuple[str, ...], ...] = ()
    """The tokens of each example, text by text, for display. Without texts the names of its steps (``x0``, ``x1``, …,
    or those that were given); empty where an example is no sequence either."""
    argument_names: Mapping[str, str] = field(default_factory=dict)
    """What the model's forward calls its arguments, by their places, for display; where it says."""
    feature_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the numbers of a step, by argument, where they were given."""
    recurrent: bool = True
    """Whether a recurrent network ran; else no expansion changes the account."""
    by_quadrature: bool = False
    """Whether a quadrature expanded a network, whose error is in the remainder."""
    target_of_example: tuple[str, ...] = ()
    """The names of the outputs where they may differ between examples: of predicted classes."""
    notes: tuple[str, ...] = ()
    deterministic: bool = True
    """Whether the model gives this output without drawing random numbers; else this accounts for one draw."""

    @property
    def tokens(self) -> Tensor | None:
        """What each token contributed; None if no argument holds tokens.

        In the shape of the argument; of several texts, side by side, shape (batch, tokens of all texts).
        """
        if len(self.texts) == 1:
            return next(iter(self.texts.values()))
        rows = self._rows(self.texts)
        return torch.cat(rows, dim=1) if rows else None

    @property
    def inputs(self) -> Tensor:
        """What tokens and features contributed together, shape (batch,)."""
        return sum((each.sum(dim=1) for each in self._rows(self._by_argument)), torch.zeros_like(self.output))

    @property
    def remainder(self) -> Tensor:
        """What the account leaves over, shape (batch,): rounding, if the expansion is exact."""
        return self.movement - self.inputs - self.initial

    @property
    def movement(self) -> Tensor:
        """The output less biases and constants, shape (batch,): what inputs and initial states account for."""
        return self.output - sum((*self.biases.values(), *self.constants.values()), torch.zeros_like(self.output))

    @property
    def cancellation(self) -> Tensor:
        """``Σ|c| / |Σc|`` over all contributions, biases and constants, shape (batch,); 1 if all have one sign."""
        total, net = self._sizes, (self.output - self.remainder).abs()
        return torch.where(total > 0, total / net.clamp_min(torch.finfo(net.dtype).tiny), torch.ones_like(net))

    @cached_property
    def cancellation_notes(self) -> tuple[str, ...]:
        """The note on the largest cancellation of an example; empty where it is not large."""
        return cancellation_note(float(self.cancellation.max()), self.expansion if self.recurrent else None)

    @cached_property
    def closes(self) -> bool:
        """Whether every remainder is rounding: at most 1e-9 of the output in float64, and 1e-4 in float32.

        The type is the coarsest in which the model computes. An output that is nearly zero is measured by Σ|c|: by a
        ten-thousandth of it, and by its rounding. A remainder above 1e-3 of the movement must be the rounding of the
        output. Where the movement is itself no more than the rounding of :attr:`passed`, as that of a window of zeros
        is, a remainder up to that rounding closes too. False where :attr:`overgrown`.
        """
        allowed = 1e-9 if self._type == torch.float64 else 1e-4
        finite = torch.finfo(self.output.dtype)
        scale = torch.maximum(self.output.abs(), 1e-4 * self._sizes)
        rounding = torch.maximum(allowed * scale, 4 * torch.finfo(self._type).eps * self._sizes)
        moved = CLOSES * self.movement.abs() + 4 * finite.eps * self.output.abs()
        of_passed = 4 * finite.eps * self.passed
        moved = torch.where(self.movement.abs() <= of_passed, of_passed, moved)
        small = self.remainder.abs() <= torch.minimum(rounding, moved) + finite.tiny
        return bool(small.all()) and not self.overgrown

    @property
    def overgrown(self) -> bool:
        """Whether contributions are so large against their sum that their own rounding says nothing of it.

        Their sum may then agree with the output by chance. The limit for the rounding of Σ|c| is 1e-6 of the largest
        output in float64, 1e-2 of it in float32 and 0.1 in a coarser type, but at least 1e-6: an output may be zero.
        """
        limit = {torch.float64: 1e-6, torch.float32: 1e-2}.get(self._type, 0.1)
        rounding = torch.finfo(self._type).eps * self._sizes
        return bool((rounding > (limit * self.output.abs().max()).clamp_min(1e-6)).any())

    @property
    def rounds(self) -> bool:
        """Whether every remainder may be the rounding, or the quadrature, of contributions of their sizes."""
        of_one = 1e-9 if self._type == torch.float64 and not self.by_quadrature else 1e-3
        of_one = max(of_one, torch.finfo(self._type).eps)
        return bool((self.remainder.abs() <= of_one * self._sizes.clamp_min(1e-3)).all())

    @property
    def rounding(self) -> Tensor:
        """What the contributions together may be off by rounding, shape (batch,): Σ|c| in the coarsest type."""
        return torch.finfo(self._type).eps / 2 * self._sizes

    @cached_property
    def moved(self) -> Tensor:
        """Σ|c| over what inputs and initial states contributed, shape (batch,)."""
        return sum((each.abs().sum(dim=1) for each in self._rows(self._by_argument)), self.initial.abs())

    @property
    def _type(self) -> torch.dtype:
        """The coarser of the types of the output and of what it is made of."""
        return coarsest_type((self.output.dtype, self.coarsest))

    @cached_property
    def _sizes(self) -> Tensor:
        """Σ|c|, shape (batch,)."""
        return sum((each.abs() for each in (*self.biases.values(), *self.constants.values())), self.moved)

    @property
    def _by_argument(self) -> dict[str, Tensor]:
        """What tokens and features contributed."""
        return {**self.texts, **self.features}

    def _rows(self, parts: Mapping[str, Tensor]) -> list[Tensor]:
        """Bring the contributions of each argument to the shape (batch, entries)."""
        return [rows_by_example(part, self.axes.get(name), len(self)) for name, part in parts.items()]

    def __len__(self) -> int:
        return len(self.output)

    def __getitem__(self, example: int) -> Self:
        if whole_number(example) is None:
            raise UsageError(f"the index of an example is {example!r}; expected a whole number")
        if not -len(self) <= example < len(self):
            raise IndexError(f"example {example} of a batch of {len(self)}; expected {-len(self)} to {len(self) - 1}")
        place = example % len(self)

        def of_arguments(parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {name: keep_example(part, self.axes.get(name), place) for name, part in parts.items()}

        def of_batch(parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {name: part[place : place + 1] for name, part in parts.items()}

        one = replace(
            self,
            target=self.target_of_example[place] if self.target_of_example else self.target,
            target_of_example=self.target_of_example[place : place + 1],
            texts=of_arguments(self.texts),
            features=of_arguments(self.features),
            initial=self.initial[place : place + 1],
            biases=of_batch(self.biases),
            constants=of_batch(self.constants),
            output=self.output[place : place + 1],
            passed=self.passed[place : place + 1],
            words=self.words[place : place + 1],
        )
        others = (note for note in self.notes if note not in self.cancellation_notes)
        return replace(one, notes=(*others, *one.cancellation_notes))

    def __iter__(self) -> Iterator[Self]:
        return (self[place] for place in range(len(self)))
