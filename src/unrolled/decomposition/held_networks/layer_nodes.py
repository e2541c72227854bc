r"""One layer of a recurrent network as two linear nodes of a graph.

The states follow s_t = G_t + A_t s_{t-1} + C_t Δu_t, and G_t = f(u⁰_t, 0) goes back to u⁰ and the biases by shares.
Both are known when the graph is made, so the nodes only take covectors back: :class:`LayerSweep` by one adjoint sweep
over the steps, :class:`AloneNode` by element-wise work and, where the layer's input is more than the vectors of tokens,
one product for all steps together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unrolled.cells.base import LayerRun
from unrolled.linalg.operators import Operator
from unrolled.linalg.structured import Structured
from unrolled.linalg.sweep_back import sweep_back
from unrolled.linalg.sweep_forward import sweep_forward

__all__ = ["LAYER_NODES", "AloneNode", "LayerSweep"]


class LayerSweep(torch.autograd.Function):
    """The states of one layer, linear in G, Δu and s_0; backward is one adjoint sweep."""

    @staticmethod
    def forward(
        ctx: Any,
        alone: Tensor,  # noqa: ARG004  # backward differentiates by it
        moved: Tensor | None,
        initial: Tensor,  # noqa: ARG004  # as above
        run: LayerRun,
        operator: Operator,
    ) -> Tensor:
        """Return the states that the network went through, shape (time, batch, state)."""
        ctx.operator, ctx.moves = operator, moved is not None
        return run.image

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Sweep from the last step to the first."""
        covectors, first, moved = _SweptBack.apply(gradients[0], ctx.operator, ctx.moves)
        return covectors, moved, first, None, None


class _SweptBack(torch.autograd.Function):
    """The backward pass of :class:`LayerSweep` as a linear map of its own, whose transpose runs the layer forward."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, operator: Operator, moves: bool) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the covectors of G, s_0 and Δu; None for Δu where there is none, or where it adds nothing."""
        ctx.operator, covectors = operator, gradient.contiguous().clone()
        first, by_input = sweep_back(operator, covectors, with_inputs=moves)
        return covectors, first, by_input

    @staticmethod
    def backward(ctx: Any, own: Tensor, start: Tensor, moved: Tensor | None) -> tuple[Tensor | None, ...]:
        """Compute the states that G, s_0 and Δu make."""
        states = own.clone() if moved is None else own + ctx.operator.apply_inputs(moved[None])[0]
        sweep_forward(ctx.operator, states, start)
        return states, None, None


class AloneNode(torch.autograd.Function):
    """What each token alone makes of the state, linear in what the layer's input is made of and in both biases."""

    @staticmethod
    def forward(
        ctx: Any,
        source: Tensor,  # noqa: ARG004  # backward differentiates by it
        input_bias: Tensor | None,  # noqa: ARG004  # as above
        recurrent_bias: Tensor | None,  # noqa: ARG004  # as above
        value: Tensor,
        operator: Structured,
        to_source: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """Return the value, shape (time, batch, state); the biases have shape (batch, K·d).

        ``to_source`` takes covectors of the products W x, shape (time, batch, K·d), to those of the source.
        """
        ctx.operator, ctx.to_source = operator, to_source
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Take covectors back to the products of all steps, then to what they were made of."""
        of_input, other = _ProductCovectors.apply(gradients[0], ctx.operator)
        of_recurrent = of_input if other is None else other
        needs_source, needs_bias, needs_recurrent_bias = ctx.needs_input_grad[:3]
        source = ctx.to_source(of_input) if needs_source else None
        bias = of_input.sum(dim=0) if needs_bias else None
        same = of_recurrent is of_input and bias is not None
        recurrent_bias = (bias if same else of_recurrent.sum(dim=0)) if needs_recurrent_bias else None
        return source, bias, recurrent_bias, None, None, None


class _ProductCovectors(torch.autograd.Function):
    """From covectors of the state to those of the products W x and U h, a linear map of its own."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, operator: Structured) -> tuple[Tensor, Tensor | None]:
        """Return both; None for the second where it is the first."""
        ctx.operator = operator
        of_input, of_recurrent = operator.product_covectors(gradient)
        return of_input, None if of_recurrent is of_input else of_recurrent

    @staticmethod
    def backward(ctx: Any, of_input: Tensor, of_recurrent: Tensor | None) -> tuple[Tensor | None, ...]:
        """Compute the state that the products make."""
        return ctx.operator.weigh(None, of_recurrent, of_input), None


LAYER_NODES = (LayerSweep, AloneNode)
"""The custom functions of a held forward that are linear."""
