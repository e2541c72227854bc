r"""What each number that a model reads contributes by one call of its recurrent network.

The contribution of a token is the sum of the n-grams that enter there, u_tᵀ g_t, with g_t = f(x_t, 0). Where x_t is
made of numbers, g_t goes back to them and to the biases by shares, as in :func:`unrolled.account`:

.. math:: u_t^\top g_t = \sum_k c_{t,k} + \text{rest}_t

The rest is what no number of the step makes: the biases of the network and of the layers before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.cells.base import Cell, LayerRun
from unrolled.cells.batch_layout import Layout
from unrolled.decomposition.held_networks.held_model import HeldModel
from unrolled.decomposition.held_networks.recurrent_rules import networks_as_operations
from unrolled.decomposition.opening.layer_runs import NetworkCall
from unrolled.decomposition.opening.parity import PARITY
from unrolled.errors import UnrolledError
from unrolled.expansions.base import Linearisation
from unrolled.explanation.numbers.no_numbers import (
    BESIDE_TOKENS,
    NoNumbersError,
    NotByStepsError,
    not_followed,
    refuse_tokens_only,
)
from unrolled.explanation.numbers.number_places import numbers_of_steps
from unrolled.explanation.numbers.step_numbers import Numbers
from unrolled.explanation.readout.readout import Readout
from unrolled.explanation.readout.record_forward import RecordedForward
from unrolled.explanation.request import Request
from unrolled.explanation.sources import Sources
from unrolled.explanation.tokens.network_reached import NetworkReached, reach
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.model_runs.eval_mode import without_autocast
from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = ["numbers_of_call"]

_NOTHING = 1e-30
"""A difference up to this counts as none, also where the states contribute nothing."""


def numbers_of_call(recorded: RecordedForward, asked: Request, reads: Sequence[Readout]) -> list[list[Numbers]]:
    """Find what each number contributes, for each readout and example.

    Raises:
        NoNumbersError: If the model reads no numbers step by step, or an operation before the network has no rule.
    """
    refuse_tokens_only(asked.arguments)
    members = [_of_member(recorded, asked, member, reads) for member in asked.expansion.members()]
    return [
        [Numbers.mean(of_example) for of_example in zip(*of_read, strict=True)]
        for of_read in zip(*members, strict=True)
    ]


def _of_member(
    recorded: RecordedForward, asked: Request, member: Linearisation, reads: Sequence[Readout]
) -> list[list[Numbers]]:
    """Find what each number contributes by one member of an expansion."""
    mode = _CapturingModel(Rows(recorded.model), member)
    packed = _run(recorded, asked, mode)
    try:
        return _of_run(recorded, reads, mode, packed)
    except NotByStepsError as error:
        raise error.naming(mode.held_names) from error


def _of_run(
    recorded: RecordedForward, reads: Sequence[Readout], mode: _CapturingModel, packed: PackedSequence | None
) -> list[list[Numbers]]:
    """Differentiate what is read of the states of a held run."""
    states = mode.by_direction(2 if recorded.rnn.bidirectional else 1, packed)
    rows, inputs = mode.rows.rows, mode.read
    if any(row.kind == "token" for row in rows):
        raise NoNumbersError(BESIDE_TOKENS)
    if states[0].dtype not in PARITY:
        raise NoNumbersError(f"the network computes in {states[0].dtype}, which is too coarse")
    if inputs is None or not inputs.requires_grad:
        raise NotByStepsError(mode.reads_held)
    columns = None if packed is None else packed.unsorted_indices
    found = []
    for read in reads:
        total = _read_of(recorded, read, states)
        (at_inputs,) = torch.autograd.grad(total.sum(), inputs, retain_graph=True, allow_unused=True)
        if at_inputs is None:
            raise NoNumbersError("the network reads rows of a table, not numbers")
        # what the initial state contributes is no token's
        through, where = (at_inputs * inputs).sum(dim=(0, 2)), inputs
        if columns is not None:
            through, where = through[columns], inputs[:, columns]
        found.append(numbers_of_steps(rows, (), through, where, recorded.opened.layout.inside, read.order.tolist()))
    return found


def _run(recorded: RecordedForward, asked: Request, mode: _CapturingModel) -> PackedSequence | None:
    """Run the model held up to its network; return what the network reads if that is a packed batch."""
    given, named = Sources(mode).open_call(asked.args, asked.kwargs)
    try:
        with (
            torch.enable_grad(),
            without_autocast(),
            networks_as_operations(recorded.model),
            _ending(recorded.rnn),
            mode,
        ):
            recorded.model(*given, **named)
    except NetworkReached as reached:
        inputs = reached.inputs
        packed, steps = (inputs, inputs.data) if isinstance(inputs, PackedSequence) else (None, inputs)
        mode.reads_held = mode.rows.origin(steps).kind == "held"
        return packed
    except (UnrolledError, RuntimeError) as error:
        raise not_followed(error) from error
    raise NoNumbersError("the model does not call its network")


def _read_of(recorded: RecordedForward, read: Readout, states: Sequence[Tensor]) -> Tensor:
    """Return what a readout reads of held states, shape (batch,), with their graph; refuse states that differ."""
    total, expected, size = (torch.zeros_like(states[0][0, :, 0]) for _ in range(3))
    for weight, state, own in zip(read.weights, states, recorded.states, strict=True):
        w, known = recorded.opened.layout.blank(weight).to(state), own.to(state)
        total = total + (w * state).sum(dim=(0, 2))
        expected, size = expected + (w * known).sum(dim=(0, 2)), size + (w * known).abs().sum(dim=(0, 2))
    # relative to what the states contribute: those that the target does not read need not be close
    if not bool(((total.detach() - expected).abs() <= PARITY[total.dtype] * size + _NOTHING).all()):
        raise NoNumbersError("a held run of the model gives other states than the model itself")
    return total


class _CapturingModel(HeldModel):
    """A held forward that collects the states of every layer and direction of a call, in token order."""

    def __init__(self, rows: Rows, expansion: Linearisation) -> None:
        super().__init__(rows, expansion)
        self.collected: list[Tensor] = []
        self.layout: Layout | None = None
        self.read: Tensor | None = None
        """What the network reads, shape (time, batch, input), a packed batch in its order."""
        self.reads_held = False
        """Whether what it reads is made of a held result, and carries no value."""

    def run_network(self, call: NetworkCall) -> tuple[Tensor, list[Tensor]]:
        """Run the layers of a network, and note their form."""
        self.collected, self.layout, self.read = [], call.layout, call.inputs
        return super().run_network(call)

    def _layer(
        self, cell: Cell, alone: Tensor, moved: Tensor | None, start: Tensor | None, run: LayerRun
    ) -> tuple[Tensor, Tensor]:
        states, base = super()._layer(cell, alone, moved, start, run)
        self.collected.append(states)
        return states, base

    def by_direction(self, ways: int, packed: PackedSequence | None) -> list[Tensor]:
        """Return the states of all layers side by side, shape (time, batch, state), in the caller's order."""
        if self.layout is None:
            raise NotByStepsError(self.reads_held)
        sides = [torch.cat(self.collected[way::ways], dim=-1) for way in range(ways)]
        sides = [self.layout.turn(each, way) for way, each in enumerate(sides)]
        if packed is None or packed.unsorted_indices is None:
            return sides
        return [each[:, packed.unsorted_indices] for each in sides]


@contextmanager
def _ending(rnn: nn.Module) -> Iterator[None]:
    """Let a network end the run of its model."""
    forward = rnn.forward

    def end(*args: Any, **kwargs: Any) -> None:
        forward(*args, **kwargs)
        reach(*args, **kwargs)

    with replaced_attributes([(rnn, "forward", end)]):
        yield
