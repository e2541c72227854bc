r"""One sweep over the steps of a layer, in place: s_t += A_t s_{t-1} from the first step to the last."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from unrolled.linalg.operators import Operator, Workspace
from unrolled.linalg.structured import Structured, block

__all__ = ["sweep_forward"]


def sweep_forward(operator: Operator, states: Tensor, initial: Tensor) -> None:
    """Add to what enters at every step what the steps before bring.

    Args:
        operator: A of all steps.
        states: What enters, shape (time, batch, state); changed in place.
        initial: s_0, shape (batch, state).
    """
    before = [initial, *states.unbind()]
    if isinstance(operator, Structured):
        _sweep_structured(operator, before)
        return
    workspace = Workspace()
    for t in range(len(states)):
        before[t + 1].add_(operator.at(t).apply(before[t][None], workspace=workspace)[0])


def _sweep_structured(operator: Structured, places: list[Tensor]) -> None:
    """Sweep with diagonals: one product a step, and around it only what must come between two products."""
    d, two = operator.units, len(operator.parts) == 2
    diagonals = {name: values.unbind() for name, values in operator.diagonals.items()}
    products = places[0].new_empty(len(places[0]), len(operator.recurrent))
    weights = operator.recurrent.T
    summands = {
        part: [
            (block(products, term.product, d), term.diagonal) for term in operator.recurrent_terms if term.part == part
        ]
        for part in operator.parts
    }
    images = {part: places[0].new_empty(len(places[0]), d) for part in operator.parts}
    for t in range(len(places) - 1):
        carried, hidden = places[t][:, :d], places[t][:, d:] if two else places[t]
        if operator.recurrent_terms:
            torch.mm(hidden, weights, out=products)
        for part, image in images.items():
            image.zero_()
            for term in operator.carry:
                if term.part == part:
                    image.addcmul_(carried, diagonals[term.diagonal][t])
            for product, name in summands[part]:
                image.addcmul_(product, diagonals[name][t])
        if operator.mix is not None:
            images["hidden"].addcmul_(images["cell"], diagonals[operator.mix][t])
        last = images["hidden"]
        if two:
            places[t + 1][:, :d].add_(images["cell"])
        places[t + 1][:, d if two else 0 :].add_(
            last if operator.projection is None else F.linear(last, operator.projection)
        )
