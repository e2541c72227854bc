r"""The readout of logits by one held run of the model around the recurrent network, and a backward pass for each.

With H the states, the run makes every logit linear in them and in the model's biases and constants b:

.. math:: F(H) = \sum_t w_t^\top H_t + \sum_k b_k

for any readout that the rules of :mod:`unrolled.held_forward` cover. No state of zero is needed, which the model may
never have seen. For a linear head w_t is its weight.

Source:
    Ours; see ``docs/mathematics.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from unrolled.decomposition.held_networks.held_model import HeldModel
from unrolled.decomposition.held_networks.layer_nodes import LAYER_NODES
from unrolled.decomposition.held_networks.recurrent_rules import networks_as_operations
from unrolled.errors import UnsupportedOperationError
from unrolled.expansions.secant import Secant
from unrolled.explanation.example_of_sequence import example_of_sequence, weighed_sums
from unrolled.explanation.held_sum import refuse_infinite, sum_gap
from unrolled.explanation.notes import bias_notes
from unrolled.explanation.readout.function_of_states import complete_by_states, function_of_states
from unrolled.explanation.readout.readout import Readout
from unrolled.explanation.readout.record_forward import RecordedForward
from unrolled.explanation.targets.output_kind import are_sigmoids, sigmoid_note
from unrolled.explanation.targets.select_target import Target, select_target
from unrolled.held_forward.graph import check_linear
from unrolled.held_forward.held_only import held_last
from unrolled.held_forward.linear_output import LinearOutput
from unrolled.held_forward.operations.coarsest_type import coarsest_type
from unrolled.held_forward.outside.taken_places import TakenPlaces
from unrolled.held_forward.runs_that_fail import failures_refused
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.model_runs.taken_numbers import refuse_read_numbers

__all__ = ["HeldReadouts"]


class HeldReadouts:
    """One held run of the model around the network, from which several targets are read.

    Args:
        recorded: The plain run.
        targets: What may be read.

    Raises:
        UnsupportedOperationError: If the model around the network has an operation without a rule.
    """

    def __init__(self, recorded: RecordedForward, targets: Sequence[Target]) -> None:
        self._recorded, self._targets = recorded, targets
        self._batch = recorded.opened.lengths.shape[0]
        self._rows = Rows(recorded.model)
        recorded.run.mark_numbers(self._rows)
        mode = HeldModel(self._rows, expansion=Secant())
        mode.taken = TakenPlaces()
        with torch.enable_grad(), networks_as_operations(recorded.model):
            given = tuple(self._rows.open("feature", f"states {d}", each) for d, each in enumerate(recorded.states))
            with failures_refused(), mode:
                output = recorded.replay(given)
                selected = self._select(output)
            self._are_sigmoids = are_sigmoids(selected, mode)
            self._outputs, self._coarsest, self._held_names = selected, mode.coarsest, mode.held_names
        refuse_read_numbers(
            mode.taken, lambda: self._select(recorded.replay(recorded.states)), self._select(recorded.output), set()
        )

    def _select(self, output: Any) -> list[Tensor]:
        return [select_target(output, target, self._batch) for target in self._targets]

    def readout(self, place: int) -> Readout:
        """Compute w_t and the biases of one of the targets by a backward pass.

        Raises:
            UnsupportedOperationError: If the target does not depend on the states by any operation that carries value,
                or the held run differs from the plain one.
        """
        recorded, states, target = self._recorded, self._recorded.states, self._targets[place]
        logit = select_target(recorded.output, target, self._batch).detach()
        refuse_infinite(logit)
        output, rows = self._outputs[place], self._rows.rows
        check_linear(output, LAYER_NODES)
        linear = LinearOutput(output, [row.leaf for row in rows], keeps=len(self._targets) > 1)
        parts = self._checked_parts(linear, logit)
        weights = [torch.zeros_like(s) if g is None else g for s, g in zip(states, linear.gradients, strict=False)]
        from_states = sum((part for part in parts[: len(states)] if part is not None), torch.zeros_like(logit))
        of_rows = list(zip(rows[len(states) :], parts[len(states) :], strict=True))
        biases: dict[str, Tensor] = {}
        for row, part in of_rows:
            if part is not None and bool(part.any()):
                biases[row.name] = biases[row.name] + part if row.name in biases else part
        notes = bias_notes(biases, of_rows, self._rows.tables, from_states)
        coarsest = coarsest_type((logit.dtype, self._coarsest, *(each.dtype for each in states)))
        is_sigmoid = self._are_sigmoids[place]
        return Readout(
            weights=tuple(weights),
            logit=logit,
            bias=logit - from_states,
            dtype=coarsest,
            order=_examples(linear, recorded, target, states, coarsest).argsort(),
            notes=(*sigmoid_note(is_sigmoid), *notes),
            biases=biases,
            is_sigmoid=is_sigmoid,
        )

    def _checked_parts(self, linear: LinearOutput, logit: Tensor) -> list[Tensor | None]:
        """Return what each row contributes to a target; refuse one that they do not sum to, or that no state moves."""
        if linear.reads_held_only(range(len(self._recorded.states)), self._rows.rows):
            last = held_last(self._held_names)
            raise UnsupportedOperationError(f"the target depends on the states by held results only, if at all{last}")
        parts = [each.detach() if each is not None else None for each in linear.split()]
        gap = sum_gap(linear.output, logit, parts, self._coarsest)
        if gap is not None:
            raise UnsupportedOperationError(f"a held run differs from the model's own output by {gap:.2g}")
        return parts


def _examples(
    linear: LinearOutput, recorded: RecordedForward, target: Target, states: tuple[Tensor, ...], coarsest: torch.dtype
) -> Tensor:
    """Find the example that reads each of the network's sequences, shape (batch,)."""
    batch, device = linear.batch, states[0].device
    if linear.axis_counts_examples:
        return torch.arange(batch, device=device)
    passes = [linear.differentiate(each)[: len(states)] for each in weighed_sums(linear.output, coarsest)]
    rows = [torch.arange(batch, device="cpu")] * len(states)
    found = example_of_sequence(passes, rows, batch, batch, coarsest).to(device)
    # no gradient may arrive at some sequences, as behind a flat relu
    return complete_by_states(found, function_of_states(recorded, target), states, coarsest)
