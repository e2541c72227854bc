r"""One adjoint sweep over the steps of a layer, in place: u_t += A_{t+1}ᵀ u_{t+1} from the last step to the first."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.linalg.operators import Operator, Workspace
from unrolled.linalg.structured import Structured, block, used_products

__all__ = ["sweep_back"]


def sweep_back(operator: Operator, covectors: Tensor, with_inputs: bool = False) -> tuple[Tensor, Tensor | None]:
    """Add to the covector of every step what the later steps bring back.

    Args:
        operator: A and C of all steps.
        covectors: u_t before the sweep, shape (time, …, batch, state); changed in place.
        with_inputs: Whether to compute the second result.

    Returns:
        The covector of the initial state, A_1ᵀ u_1, shape (…, batch, state), and those of the input, C_tᵀ u_t of the
        u_t after the sweep, shape (time, …, batch, input). The second is None if it was not asked for, or if C is zero.
    """
    # one more place in front, so that the first step is no special case
    initial = torch.zeros_like(covectors[0])
    places = [initial, *covectors.unbind()]
    if isinstance(operator, Structured):
        _sweep_structured(operator, places)
        if not with_inputs:
            return initial, None
        # a product of all steps at once is faster than one a step
        columns = covectors.reshape(len(covectors), -1, *covectors.shape[-2:])
        by_input = operator.apply_transpose(columns.transpose(0, 1))[1]
        return initial, None if by_input is None else _as_given(by_input.transpose(0, 1), covectors)
    by_inputs: list[Tensor | None] = []
    workspace = Workspace()
    for t in reversed(range(len(covectors))):
        columns = places[t + 1].reshape(-1, *covectors.shape[-2:])
        image, by_step = operator.at(t).apply_transpose(columns, with_inputs, workspace=workspace)
        places[t].add_(image.view_as(places[t]))
        by_inputs.append(by_step)
    of_steps = [each for each in reversed(by_inputs) if each is not None]
    return initial, _as_given(torch.stack(of_steps), covectors) if of_steps else None


def _as_given(by_input: Tensor, covectors: Tensor) -> Tensor:
    """Give covectors of the input, shape (time, columns, batch, input), the leading axes of those of the state."""
    return by_input.reshape(*covectors.shape[:-1], by_input.shape[-1])


def _sweep_structured(operator: Structured, places: list[Tensor]) -> None:
    """Sweep with diagonals: one product a step, and around it only what must come between two products."""
    d, two = operator.units, len(operator.parts) == 2
    first = [place[..., :d] for place in places]
    given = {"cell": first, "hidden": [place[..., d:] for place in places]} if two else {"hidden": first}
    diagonals = {name: values.unbind() for name, values in operator.diagonals.items()}
    lead = places[0].shape[:-1]
    stacked, mixed = places[0].new_zeros(*lead, len(operator.recurrent)), places[0].new_empty(*lead, d)
    gathered = places[0].new_empty(*lead, operator.recurrent.shape[1])
    rows, products = stacked.view(-1, stacked.shape[-1]), gathered.view(-1, gathered.shape[-1])
    summands = [
        (block(stacked, k, d), [term for term in operator.recurrent_terms if term.product == k])
        for k in used_products(operator.recurrent_terms)
    ]
    for t in reversed(range(len(places) - 1)):
        parts = {name: each[t + 1] for name, each in given.items()}
        if operator.projection is not None:
            parts["hidden"] = parts["hidden"] @ operator.projection
        if operator.mix is not None:
            parts["cell"] = torch.addcmul(parts["cell"], parts["hidden"], diagonals[operator.mix][t], out=mixed)
        for target, (term, *others) in summands:
            torch.mul(parts[term.part], diagonals[term.diagonal][t], out=target)
            for other in others:
                target.addcmul_(parts[other.part], diagonals[other.diagonal][t])
        if summands:
            torch.mm(rows, operator.recurrent, out=products)
            given["hidden"][t].add_(gathered)
        for term in operator.carry:
            first[t].addcmul_(parts[term.part], diagonals[term.diagonal][t])
