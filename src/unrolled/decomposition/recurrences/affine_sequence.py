r"""The affine recurrence s_t = g_t + A_t s_{t-1} that an expansion computes for a stack of layers.

The state concatenates the states of all layers. The operator A_t is block lower triangular: within one step, a layer's
state also changes the states of the layers above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.cells.base import LayerRun
from unrolled.decomposition.recurrences.numbers_in_steps import lost_in_python
from unrolled.errors import UnrolledError
from unrolled.expansions.base import Linearisation
from unrolled.linalg.operators import Operator, Workspace
from unrolled.model_runs.eval_mode import without_grad_and_autocast

__all__ = ["AffineSequence", "expand_directions", "expand_layers"]

AT_ONCE = 1024
"""Vectors that are computed at once: enough for one product to be fast, and few for its intermediate results."""


@dataclass(frozen=True)
class AffineSequence:
    """g_t and A_t for every step of every layer; s_t = g_t + A_t s_{t-1}."""

    g: Tensor
    """Shape (time, batch, state), all layers side by side."""
    operators: tuple[Operator, ...]
    """One for each layer, with all steps."""
    layers: tuple[LayerRun, ...]
    failure: UnrolledError | None = None
    """Why the expansion of a layer is not to be trusted; None if it is."""

    @property
    def sizes(self) -> list[int]:
        """Size of each layer's state."""
        return [layer.cell.state_size for layer in self.layers]

    @property
    def initial(self) -> Tensor:
        """s_0, shape (batch, state)."""
        return torch.cat([layer.initial for layer in self.layers], dim=-1)

    @property
    def hidden(self) -> slice:
        """Position of the top layer's hidden output in the state."""
        total = sum(self.sizes)
        return slice(total - self.layers[-1].cell.output_size, total)

    def apply(
        self, time: int | slice, block: Tensor, out: Tensor, workspace: Workspace, below: Tensor | None = None
    ) -> Tensor:
        """Compute A_t V for V of shape (columns, batch, state) into ``out``, which must not overlap with V.

        For several steps each has a vector of its own, (steps, batch, state).
        ``below`` are increments of the lowest layer's input, shape (columns, batch, input); None for none.
        """
        parts = zip(block.split(self.sizes, dim=-1), out.split(self.sizes, dim=-1), strict=True)
        for layer, operator, (part, image) in zip(self.layers, self.operators, parts, strict=True):
            operator.at(time).apply(part, below, out=image, workspace=workspace)
            below = layer.cell.hidden(image)
        return out

    def apply_from(self, first: int, block: Tensor) -> Tensor:
        """Compute A_t v_t for each step from one on, shape (steps, batch, state)."""
        out, workspace = torch.empty_like(block), Workspace()
        count = max(1, AT_ONCE // block.shape[1])
        for begin, (part, images) in enumerate(zip(block.split(count), out.split(count), strict=True)):
            start = first + begin * count
            self.apply(slice(start, start + len(part)), part, images, workspace)
        return out

    def apply_transpose(self, time: int, block: Tensor, out: Tensor, workspace: Workspace) -> Tensor:
        """Compute A_tᵀ U for U of shape (columns, batch, state) into ``out``, which must not overlap with U."""
        from_above: Tensor | None = None
        parts, images = block.split(self.sizes, dim=-1), out.split(self.sizes, dim=-1)
        for index in reversed(range(len(self.layers))):
            part, cell = parts[index], self.layers[index].cell
            if from_above is not None:
                part = part.clone()
                cell.hidden(part).add_(from_above)
            operator = self.operators[index].at(time)
            _, from_above = operator.apply_transpose(part, index > 0, out=images[index], workspace=workspace)
        return out


def expand_directions(
    directions: Sequence[Sequence[LayerRun]], members: Sequence[Linearisation], tolerance: float
) -> tuple[tuple[AffineSequence, ...], ...]:
    """Expand the layers of each direction by each member of an expansion."""
    return tuple(tuple(expand_layers(layers, member, tolerance) for member in members) for layers in directions)


@without_grad_and_autocast()
def expand_layers(
    layers: Sequence[LayerRun], linearisation: Linearisation, tolerance: float, origin: Tensor | None = None
) -> AffineSequence:
    """Linearise a run of a stack, lowest layer first.

    The line of a layer starts at what the current token alone makes of the layer below: the hidden part of that
    layer's g. ``tolerance`` is the relative error over the whole sequence; each step gets an equal share. A quadrature
    that does not reach it is kept as it is, with its failure, and so is a step that takes numbers out of torch.
    ``origin`` is where the line of the lowest layer starts; by default its input does not move.
    """
    per_step = tolerance / max(1, layers[0].inputs.shape[0])
    terms: list[Tensor] = []
    operators: list[Operator] = []
    failure: UnrolledError | None = None
    origin = layers[0].inputs if origin is None else origin
    for layer in layers:
        ray = layer.ray(origin)
        g, operator, failed = linearisation.expand_or_keep(ray, per_step)
        failure = lost_in_python(ray) or failed or failure
        terms.append(g)
        operators.append(operator)
        origin = layer.cell.hidden(g)
    g = terms[0] if len(terms) == 1 else torch.cat(terms, dim=-1)
    return AffineSequence(g, tuple(operators), tuple(layers), failure)
