r"""One adjoint sweep over the steps of a layer, in place: u_t += A_{t+1}ᵀ u_{t+1} from the last step to the first."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.linalg.operators import Operator, Workspace
from unrolled.linalg.structured import Structured, block, used_products

__all__ = ["sweep_back"]


def sweep_back(operator: Operator, covectors: Tensor) -> Tensor:
    """Add to the covector of every step what the later steps bring back.

    Args:
        operator: A of all steps.
        covectors: u_t before the sweep, shape (time, …, batch, state); changed in place.

    Returns:
        The covector of the initial state, A_1ᵀ u_1, shape (…, batch, state).
    """
    # one more place in front, so that the first step is no special case
    initial = torch.zeros_like(covectors[0])
    places = [initial, *covectors.unbind()]
    if isinstance(operator, Structured):
        _sweep_structured(operator, places)
    else:
        workspace = Workspace()
        for t in reversed(range(len(covectors))):
            block = places[t + 1].reshape(-1, *covectors.shape[-2:])
            image, _ = operator.at(t).apply_transpose(block, with_inputs=False, workspace=workspace)
            places[t].add_(image.view_as(places[t]))
    return initial


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
