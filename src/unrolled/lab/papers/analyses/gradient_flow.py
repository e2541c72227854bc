r"""How far gradients flow back: norms of the derivatives of the last step with respect to earlier states.

.. math:: \frac{∂h_T}{∂s_{T-k}} = \frac{∂h_T}{∂s_T} \prod_{j=T-k+1}^{T} \frac{∂s_j}{∂s_{j-1}}

The state s is all that a cell carries: h, and for an LSTM [c; h]. The Jacobians are the cell's own, at the states of
the run.

Source:
    CS 224D, lecture notes IV (2015), eq. 12 and 16.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from unrolled.cells.base import Cell
from unrolled.cells.elman import Elman
from unrolled.lab.papers.framework.training_loop import WordScorer
from unrolled.linalg.activations import RELU, SIGMOID, TANH

__all__ = ["GradientFlow", "bound_per_step", "gradient_flow", "gradient_norms", "jacobian_norms"]

_LARGEST_SLOPE = {SIGMOID: 0.25, TANH: 1.0, RELU: 1.0}


class GradientFlow(NamedTuple):
    """Norms for every distance k = 0, 1, …; means over texts, to four digits."""

    jacobian: tuple[float, ...]
    """‖∂h_T/∂s_{T-k}‖."""
    loss: tuple[float, ...]
    """‖∂E/∂s_{T-k}‖."""
    bound: float | None
    """β_W β_h; None for a cell that is not an Elman cell."""
    kept: bool | None
    """Whether no Jacobian of any text is larger than the bound to the power of k."""


def gradient_flow(model: WordScorer, words: Tensor, answers: Tensor, reach: int) -> GradientFlow | None:
    """Measure in float64 what flows back over up to ``reach`` steps; None when the norms are not finite.

    E is the cross-entropy of ``answers``, shape (batch,), after the last of ``words``, shape (time, batch).
    """
    double = copy.deepcopy(model).double()
    inputs = double.embedding(words).detach()
    with torch.no_grad():
        last = double.hidden(words)[-1]
    last.requires_grad_()
    (gradient,) = torch.autograd.grad(F.cross_entropy(double.output(last), answers, reduction="sum"), last)
    jacobian, loss = jacobian_norms(double.cell, inputs), gradient_norms(double.cell, inputs, gradient)
    if not (jacobian.isfinite().all() and loss.isfinite().all()):
        return None
    by_distance = [jacobian.mean(dim=1), loss.mean(dim=1)]
    shown = (tuple(float(f"{value:.4g}") for value in each[: reach + 1].tolist()) for each in by_distance)
    bound = kept = None
    if isinstance(double.cell, Elman):
        bound = bound_per_step(double.cell)
        limit = bound ** torch.arange(len(jacobian), dtype=torch.float64)
        kept = bool((jacobian.amax(dim=1) <= limit * (1 + 1e-9)).all())
    return GradientFlow(next(shown), next(shown), bound, kept)


def jacobian_norms(cell: Cell, inputs: Tensor) -> Tensor:
    """Compute the spectral norms ‖∂h_T/∂s_{T-k}‖ for inputs of shape (time, batch, input).

    The result has the shape (time + 1, batch), for k = 0 … T: 1 for k = 0, infinite where the Jacobian overflows.
    """
    batch = inputs.shape[1]
    rows = cell.hidden(torch.eye(cell.state_size, dtype=inputs.dtype, device=inputs.device)).T
    block = rows[:, None].expand(-1, batch, -1)
    return torch.stack([_spectral_norms(each.transpose(0, 1)) for each in _flow_back(cell, inputs, block)])


def _spectral_norms(matrices: Tensor) -> Tensor:
    finite = matrices.isfinite().all(dim=(1, 2))
    norms = torch.linalg.matrix_norm(torch.where(finite[:, None, None], matrices, 0.0), 2)
    return torch.where(finite, norms, torch.inf)


def gradient_norms(cell: Cell, inputs: Tensor, last: Tensor) -> Tensor:
    """Compute ‖∂E/∂s_{T-k}‖ for k = 0 … T, shape (time + 1, batch), from ∂E/∂h_T of shape (batch, output)."""
    state = last.new_zeros(1, inputs.shape[1], cell.state_size)
    cell.hidden(state).copy_(last)
    return torch.stack([each[0].norm(dim=-1) for each in _flow_back(cell, inputs, state)])


def bound_per_step(cell: Elman) -> float:
    """Compute β_W β_h, the largest singular value of U times the largest slope of φ: ‖∂h_t/∂h_{t-k}‖ ≤ (β_W β_h)^k."""
    return torch.linalg.matrix_norm(cell.weight_hh.detach(), 2).item() * _LARGEST_SLOPE[cell.activation]


def _flow_back(cell: Cell, inputs: Tensor, block: Tensor) -> Iterator[Tensor]:
    """Yield covectors at the last step, then at each step before; shape (columns, batch, state)."""
    with torch.no_grad():
        operators = cell.run(inputs).ray(inputs).at(1.0)
        yield block
        for time in range(len(inputs) - 1, -1, -1):
            block, _ = operators.at(time).apply_transpose(block.contiguous(), with_inputs=False)
            yield block
