"""The account of an output: what each source contributed, and what is left over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unrolled.decomposition.attribution import CLOSES
from unrolled.decomposition.number_notes import cancellation_note
from unrolled.errors import UsageError
from unrolled.report.frames import to_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unrolled.report.account_view import AccountView

__all__ = ["Account"]


@dataclass(frozen=True, repr=False, eq=False)
class Account:
    r"""What every token, feature, bias and initial state contributed to one output of each example.

    .. math:: \text{output} = \text{tokens} + \text{features} + \text{initial states} + \text{biases}
        + \text{constants} + \text{remainder}

    Contributions are in the unit of the output (a logit). What is held is no part of them: the values that gates,
    attention weights, slopes and scales of normalisations took. ``print(account)`` shows the first example in a
    terminal; a notebook shows it as HTML. ``len(account)`` is the number of examples, ``account[i]`` is one of them.

    Example:
        >>> import torch, unrolled
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        >>> found = unrolled.account(model, torch.randn(5, 3), target=1)
        >>> found.features["0"].shape, sorted(found.biases)
        (torch.Size([5, 3]), ['0.bias', '2.bias'])
    """

    target: str
    """Name of the output: ``"output 1"``, or a class."""
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
    coarsest: torch.dtype = torch.float64
    """The type of least precision in which the model computed any part of it."""
    axes: Mapping[str, int | None] = field(default_factory=dict)
    """For each argument the axis that counts examples, in the order of the output; None for a single example."""
    words: tuple[tuple[str, ...], ...] = ()
    """The tokens of each example, text by text, for display. Without texts the names of its steps (``x0``, ``x1``, …,
    or those that were given); empty where an example is no sequence either."""
    feature_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the numbers of a step, by argument, where they were given."""
    recurrent: bool = True
    """Whether a recurrent network ran; else no expansion changes the account."""
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
        rows = [self._by_example(name, part) for name, part in self.texts.items()]
        return torch.cat(rows, dim=1) if rows else None

    @property
    def inputs(self) -> Tensor:
        """What tokens and features contributed together, shape (batch,)."""
        return sum((each.sum(dim=1) for each in self._parts()), torch.zeros_like(self.output))

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
        ten-thousandth of it, and by its rounding. No remainder above 1e-3 of the movement closes, unless it is the
        rounding of the output. False where :attr:`overgrown`.
        """
        allowed = 1e-9 if self._type == torch.float64 else 1e-4
        finite = torch.finfo(self.output.dtype)
        scale = torch.maximum(self.output.abs(), 1e-4 * self._sizes)
        rounding = torch.maximum(allowed * scale, 4 * torch.finfo(self._type).eps * self._sizes)
        moved = CLOSES * self.movement.abs() + 4 * finite.eps * self.output.abs()
        small = self.remainder.abs() <= torch.minimum(rounding, moved) + finite.tiny
        return bool(small.all()) and not self.overgrown

    @property
    def overgrown(self) -> bool:
        """Whether contributions are so large against their sum that their own rounding says nothing of it.

        Their sum may then agree with the output by chance. It is true where the rounding of Σ|c| is above 1e-6 of the
        largest output in float64, 1e-2 in float32 or 0.1 in a coarser type, and above 1e-6 by itself: an output may be
        zero.
        """
        limit = {torch.float64: 1e-6, torch.float32: 1e-2}.get(self._type, 0.1)
        rounding = torch.finfo(self._type).eps * self._sizes
        return bool((rounding > (limit * self.output.abs().max()).clamp_min(1e-6)).any())

    @property
    def rounds(self) -> bool:
        """Whether every remainder may be the rounding, or the quadrature, of contributions of their sizes."""
        of_one = 1e-9 if self._type == torch.float64 else 1e-3
        of_one = 1e-3 if "path" in self.expansion else max(of_one, torch.finfo(self._type).eps)
        return bool((self.remainder.abs() <= of_one * self._sizes.clamp_min(1e-3)).all())

    @property
    def _type(self) -> torch.dtype:
        """The coarser of the types of the output and of what it is made of."""
        return max(self.output.dtype, self.coarsest, key=lambda each: torch.finfo(each).eps)

    @cached_property
    def _sizes(self) -> Tensor:
        """Σ|c|, shape (batch,)."""
        named = (self.initial, *self.biases.values(), *self.constants.values())
        total = sum((each.abs() for each in named), torch.zeros_like(self.output))
        return sum((each.abs().sum(dim=1) for each in self._parts()), total)

    @property
    def ledger(self) -> dict[str, float]:
        """The parts of the first example's output; ``account[i].ledger`` are those of another one.

        Example:
            >>> import torch, unrolled
            >>> model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
            >>> list(unrolled.account(model, torch.randn(1, 3), target=1).ledger)
            ['inputs', 'initial states', 'biases', 'constants', 'remainder', 'output']
        """
        one = self[0]
        return {
            "inputs": float(one.inputs),
            "initial states": float(one.initial),
            "biases": float(sum(one.biases.values())),
            "constants": float(sum(one.constants.values())),
            "remainder": float(one.remainder),
            "output": float(one.output),
        }

    def compare(self, other: Account) -> dict[str, float]:
        """Compare two accounts of the same output.

        Returns:
            ``correlation`` of the contributions of tokens and features, and the ``largest`` absolute difference.

        Raises:
            UsageError: If the accounts are of different arguments or outputs.
        """
        mine, theirs = (torch.cat([part.reshape(-1) for part in each._parts()]).double() for each in (self, other))
        same = self.output.shape == other.output.shape and mine.shape == theirs.shape
        if not same or not torch.allclose(self.output, other.output.to(self.output), rtol=1e-3, atol=1e-5):
            raise UsageError("the accounts are of different outputs: account for one model on the same arguments")
        return {
            "correlation": float(torch.corrcoef(torch.stack((mine, theirs)))[0, 1]),
            "largest": float((mine - theirs).abs().max()),
        }

    def to_records(self) -> list[dict[str, object]]:
        """Return every contribution of every example as a record; those of an example sum to its output.

        ``kind`` is ``"token"``, ``"feature"``, ``"initial state"``, ``"bias"``, ``"constant"`` or ``"remainder"``.
        ``source`` is the argument or the name of the parameter; ``step``, ``label`` (the token) and ``feature`` say
        which entry of the argument.

        Example:
            >>> import torch, unrolled
            >>> model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
            >>> rows = unrolled.account(model, torch.randn(1, 3), target=1, features=["a", "b", "c"]).to_records()
            >>> [row["feature"] or row["source"] or row["kind"] for row in rows]
            ['a', 'b', 'c', 'initial state', '0.bias', '2.bias', 'remainder']
        """
        from unrolled.whole_model.records import records_of

        return records_of(self)

    def to_frame(self) -> Any:
        """Return :meth:`to_records` as a data frame: of pandas, or of polars where pandas is not installed.

        Raises:
            UsageError: If neither is installed.
        """
        return to_frame(self.to_records())

    def render(self, width: int = 100, colour: bool = False, example: int = 0) -> str:
        """Return one example as text for a terminal of ``width`` columns, with ANSI colours if ``colour``."""
        from unrolled.report.account_terminal import to_text

        return to_text(self.view(example), width=width, colour=colour)

    def figure(self, example: int = 0, limit: float | None = None) -> Figure:
        """Draw the contributions of one example; needs matplotlib.

        Args:
            example: Index of the example.
            limit: Value at the ends of the colour scale; None for the largest value.

        Raises:
            UsageError: If matplotlib is missing or the limit is not above 0.
        """
        from unrolled.report.account_figure import account_figure

        return account_figure(self.view(example), limit)

    def save_html(self, path: str | Path, example: int = 0) -> Path:
        """Write one example as a self-contained HTML page, and return its path.

        Raises:
            FileError: If the file cannot be written.
            NonFiniteError: If the account holds NaN or infinity.
        """
        from unrolled.report.account_page import save_page

        save_page(path, self.view(example))
        return Path(path)

    def view(self, example: int = 0) -> AccountView:
        """Return what terminal, figure and page show of one example."""
        from unrolled.whole_model.view import view_of

        return view_of(self, example)

    def _by_example(self, name: str, part: Tensor) -> Tensor:
        """Bring the contributions of one argument to the shape (batch, entries)."""
        axis = self.axes.get(name)
        return part.reshape(1, -1) if axis is None else part.movedim(axis, 0).reshape(len(self), -1)

    def _parts(self) -> list[Tensor]:
        return [self._by_example(name, part) for name, part in (*self.texts.items(), *self.features.items())]

    def __len__(self) -> int:
        return len(self.output)

    def __getitem__(self, example: int) -> Account:
        if not -len(self) <= example < len(self):
            raise IndexError(f"example {example} of a batch of {len(self)}")
        place = example % len(self)

        def of_arguments(parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
            found = {}
            for name, part in parts.items():
                axis = self.axes.get(name)
                found[name] = part if axis is None else part.narrow(axis, place, 1)
            return found

        def of_batch(parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {name: part[place : place + 1] for name, part in parts.items()}

        one = replace(
            self,
            texts=of_arguments(self.texts),
            features=of_arguments(self.features),
            initial=self.initial[place : place + 1],
            biases=of_batch(self.biases),
            constants=of_batch(self.constants),
            output=self.output[place : place + 1],
            words=self.words[place : place + 1],
        )
        others = (note for note in self.notes if note not in self.cancellation_notes)
        return replace(one, notes=(*others, *one.cancellation_notes))

    def __iter__(self) -> Iterator[Account]:
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value:.4g}" for name, value in self.ledger.items())
        return f"Account({self.target}, {len(self)} examples, {self.expansion}; first: {parts})"

    def __str__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        from unrolled.report.account_page import render_fragment

        return render_fragment(self.view())
