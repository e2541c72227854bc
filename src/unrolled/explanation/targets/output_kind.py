"""Whether a model's output is a logit, a probability or the logarithm of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from unrolled.held_forward.mode import HeldForward
from unrolled.held_forward.tensor_facts.gates import Gate, Gates
from unrolled.held_forward.tensor_facts.rows import Row

__all__ = ["OutputKind", "are_sigmoids", "kind_note", "output_kind", "sigmoid_note"]

OutputKind = Literal["output", "probability of output", "log-probability of output"]

_SIGMOID_NOTE = (
    "the target is the result of a sigmoid, not a logit: contributions are those to the probability, above and "
    "below one half"
)
_PROBABILITY_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
"""How far the sum of probabilities may be from 1; 0.02 in other types."""
_ROUNDINGS = 8
"""How many roundings of 1 a picked probability may be off."""


def output_kind(output: object) -> OutputKind:
    """Tell by its values what an output of shape (batch, classes) holds: probabilities sum to 1 in every row."""
    if not isinstance(output, Tensor) or output.dim() != 2 or output.shape[1] < 2 or not output.is_floating_point():
        return "output"
    values, close = output.detach(), _PROBABILITY_TOLERANCE.get(output.dtype, 0.02)
    if bool((values >= 0).all()) and bool(((values.double().sum(dim=1) - 1).abs() <= close).all()):
        return "probability of output"
    if bool((values <= 0).all()) and bool((values.double().logsumexp(dim=1).abs() <= close).all()):
        return "log-probability of output"
    return "output"


def are_sigmoids(targets: Sequence[Tensor], mode: HeldForward) -> list[bool]:
    """Tell which targets are results of a sigmoid, which are probabilities; a scaled one is none.

    Of a result the half that a held choice of its class keeps is a constant: it is the same, whatever is chosen.

    Args:
        targets: As a held run gives them, with their graphs.
        mode: That of the run.
    """
    found = [_is_sigmoid(each, mode.gates) for each in targets]
    halves = [place for place, row in enumerate(mode.rows.rows) if all(found) and _are_halves(row)]
    if halves:
        leaves = [mode.rows.rows[place].leaf for place in halves]
        total = torch.stack([each.sum() for each in targets]).sum()
        slopes = torch.autograd.grad(total, leaves, retain_graph=True, allow_unused=True)
        mode.rows.call_constants(
            place
            for place, slope in zip(halves, slopes, strict=True)
            if slope is not None and bool(((slope == 0) | (slope.abs() == 1)).all())
        )
    return found


def _are_halves(row: Row) -> bool:
    """Tell whether a row is what a held choice may keep of the results of a sigmoid at zero."""
    return row.kind == "held" and bool(((row.leaf == 0) | (row.leaf.abs() == 0.5)).all())


def _is_sigmoid(target: Tensor, gates: Gates) -> bool:
    gate = gates.of(target)
    if gate is not None:
        return bool((gate.at_zero == 0.5).all())
    return target.requires_grad and any(_picks(target, each) for each in gates.last if each.risen.requires_grad)


def _picks(target: Tensor, gate: Gate) -> bool:
    """Tell whether each number of a target is one entry p of a gate, or 1 - p: picked by a product and a sum."""
    rounding = _ROUNDINGS * max(torch.finfo(each.dtype).eps for each in (target, gate.risen))
    if not _may_be_picked(target, gate, rounding):  # most targets are none, and a gradient takes longer
        return False
    (slope,) = torch.autograd.grad(target.sum(), gate.risen, retain_graph=True, allow_unused=True)
    if slope is None or int(slope.count_nonzero()) != target.numel():
        return False
    picked = slope != 0
    slopes, at_zero = slope[picked], gate.at_zero[picked]
    if not bool(((slopes.abs() == 1) & (at_zero == 0.5)).all()):
        return False
    found, values = ((0.5 + slopes * gate.risen.detach()[picked]).sort()[0], target.detach().reshape(-1).sort()[0])
    return bool(((found - values).abs() <= rounding).all())


def _may_be_picked(target: Tensor, gate: Gate, rounding: float) -> bool:
    """Tell whether the first number of a target is some entry p of a gate, or 1 - p."""
    above_half = (target.detach().reshape(-1)[0] - 0.5).abs()
    return bool(((gate.risen.detach().abs() - above_half).abs() <= rounding).any())


def sigmoid_note(of_sigmoid: bool) -> tuple[str, ...]:
    """Say what a target is that is the result of a sigmoid."""
    return (_SIGMOID_NOTE,) if of_sigmoid else ()


def kind_note(target: str, model: nn.Module) -> tuple[str, ...]:
    """Say why the target is called a probability, and how to explain the logit."""
    kind, named, _ = target.partition(" of output ")
    if not named:
        return ()
    why = "the outputs" if kind == "probability" else "the exponentials of the outputs"
    way = "where a softmax gave them, explain a model that returns the values before it"
    if isinstance(model, nn.Sequential) and isinstance(model[-1], nn.Softmax | nn.LogSoftmax):
        way = "explain model[:-1]"
    return (f"this is called a {kind}, not a logit, since {why} are not negative and sum to 1; for the logit, {way}",)
