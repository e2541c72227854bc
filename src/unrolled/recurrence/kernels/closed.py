r"""The kernel of the closed cells: φ forward, its slopes backward.

    δz^h_t[k] = Σ_j b_t[jk] ⊙ δs_t[j],   δh_{t-1} += δz^h_t U,   δc_{t-1} += Σ_j a_t[j] ⊙ δs_t[j]

Slopes are computed for a stretch of many steps at once, element-wise; a step back is a weighted sum and one product.
The gradient of U is one product over all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import linear

from unrolled.algebra.operator import Term
from unrolled.recurrence.kernels.sequence import SequenceKernel, stretches

if TYPE_CHECKING:
    from unrolled.recurrence.closed import ClosedCell

__all__ = ["ClosedKernel", "weigh_back"]


class ClosedKernel(SequenceKernel):
    """A closed cell without a projection, over a whole sequence.

    Its tensors are z^x, U, b', s_0 and then whatever other parameters φ has.

    Args:
        cell: the cell.
    """

    def __init__(self, cell: ClosedCell) -> None:
        self.cell = cell
        shared = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        self.names = [name for name, _ in cell.named_parameters() if name not in shared]

    def extras(self) -> list[Tensor]:
        """Give the parameters of φ itself, such as the gains of a multiplicative integration."""
        parameters = dict(self.cell.named_parameters())
        return [parameters[name] for name in self.names]

    def plain(self, *tensors: Any) -> Tensor:
        """Run step by step."""
        by_input, weight, bias, state, *extras = tensors

        def loop() -> Tensor:
            states = [state]
            for x in by_input:
                h = linear(self.cell.hidden(states[-1]), weight, bias)
                states.append(self.cell.join(self.cell.combine(x, h, states[-1][..., : self.cell.hidden_size])))
            return torch.stack(states)

        return self._with(extras, loop)

    def forward(self, *tensors: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run with one product a step, into one buffer; keep the products."""
        by_input, weight, bias, state = tensors[:4]
        d, count = self.cell.hidden_size, len(self.cell.carry)
        states = state.new_empty(len(by_input) + 1, *state.shape)
        states[0] = state
        products = by_input.new_empty(*by_input.shape[:2], len(weight))
        # views of every step and part, made at once: taken one by one they cost as much as the sums
        parts = [part.unbind() for part in states.split(d, dim=-1)]
        transposed = weight.T.contiguous()  # read at every step: worth laying out once
        for t, (x, product) in enumerate(zip(by_input.unbind(), products.unbind(), strict=True)):
            if bias is None:
                torch.mm(parts[-1][t], transposed, out=product)
            else:
                torch.addmm(bias, parts[-1][t], transposed, out=product)
            for part, value in zip(range(count), self.cell.combine(x, product, parts[0][t]), strict=True):
                parts[part][t + 1].copy_(value)
        return states, (products,)

    def backward(
        self, gradient: Tensor, tensors: tuple[Any, ...], states: Tensor, kept: tuple[Tensor, ...]
    ) -> tuple[Tensor | None, ...]:
        """Carry δc and δh alone through the loop."""
        by_input, weight, bias, state, *extras = tensors
        (products,) = kept
        d, cell = self.cell.hidden_size, self.cell
        arrived, scaled, by_token = gradient.clone(), torch.empty_like(products), torch.empty_like(by_input)
        by_extra = [torch.zeros_like(extra) for extra in extras]
        used = {*(a for a in cell.carry if a is not None), *(term.coefficient for term in cell.recurrent_terms)}
        parts = [part.unbind() for part in arrived.split(d, dim=-1)]
        blocks = [block.unbind() for block in scaled.split(d, dim=-1)]
        rows = scaled.unbind()
        for start, stop in stretches(len(by_input), state.shape[0] * d):
            x, h, carried = by_input[start:stop], products[start:stop], states[start:stop, :, :d]
            slopes = self._with(extras, partial(cell.slopes, x, h, carried))
            steps = {k: slopes[k].unbind() for k in used}
            for t in range(stop - 1, start - 1, -1):
                now = {k: slope[t - start] for k, slope in steps.items()}
                weigh_back(cell.recurrent_terms, now, [part[t + 1] for part in parts], [block[t] for block in blocks])
                parts[-1][t].addmm_(rows[t], weight)
                for part, a in enumerate(cell.carry):
                    if a is not None:
                        parts[0][t].addcmul_(now[a], parts[part][t + 1])
            through = arrived[start + 1 : stop + 1].split(d, dim=-1)
            if not extras:
                coefficients = dict(enumerate(slopes))
                weigh_back(cell.input_terms, coefficients, through, by_token[start:stop].split(d, dim=-1))
                continue
            with torch.enable_grad():
                leaves = [tensor.detach().requires_grad_() for tensor in (x, *extras)]
                images = self._with(leaves[1:], partial(cell.combine, leaves[0], h, carried))
            found = torch.autograd.grad(images, leaves, through, materialize_grads=True)
            by_token[start:stop] = found[0]
            for total, more in zip(by_extra, found[1:], strict=True):
                total += more
        flat = scaled.flatten(0, 1)
        by_weight = flat.T @ states[:-1, :, -d:].reshape(-1, d)
        by_bias = None if bias is None else flat.sum(dim=0)
        return by_token, by_weight, by_bias, arrived[0], *by_extra

    def _with(self, extras: Sequence[Tensor], call: Callable[[], Any]) -> Any:
        """Call with the given parameters in the cell's place."""
        if not extras:
            return call()
        return functional_call(_Calling(self.cell, call), dict(zip(self._inside(), extras, strict=True)), ())

    def _inside(self) -> list[str]:
        return [f"cell.{name}" for name in self.names]


class _Calling(nn.Module):
    def __init__(self, cell: ClosedCell, call: Callable[[], Any]) -> None:
        super().__init__()
        self.cell, self.call = cell, call

    def forward(self) -> Any:
        return self.call()


def weigh_back(
    terms: Sequence[Term], coefficients: dict[int, Tensor], arrived: Sequence[Tensor], out: Sequence[Tensor]
) -> None:
    """Compute what arrives at each product: Σ_j b[jk] ⊙ δs[j].

    Args:
        terms: the summands diag(b) U_k.
        coefficients: the diagonals by number, each (…, d).
        arrived: δs, part by part, each (…, d).
        out: where the sums go, product by product, each (…, d).
    """
    begun: set[int] = set()
    for term in terms:
        block, weight = out[term.product], coefficients[term.coefficient]
        if term.product in begun:
            block.addcmul_(weight, arrived[term.part])
        else:
            torch.mul(weight, arrived[term.part], out=block)
            begun.add(term.product)
