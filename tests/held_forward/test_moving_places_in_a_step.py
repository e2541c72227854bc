"""Places that the state of a step of the user's own changes: what reads them or is written at them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments.increments import SecantIncrements


def points(seed, *shape):
    return torch.randn(2, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def written(values, *places):
    result = torch.zeros_like(values)
    result[places] = 1.0
    return result


OF_ANY_SHAPE = {
    "the place in a tensor of one axis": lambda z: written(z[0], z[0].argmax()[None]),
    "the place among all, with its axes": lambda z: F.one_hot(z.argmax(keepdim=True), 12).to(z),
    "the same by position": lambda z: F.one_hot(torch.argmin(z, None, True), 12).to(z),
    "rows beside places of fewer axes": lambda z: z[torch.arange(2)[:, None], z[0].topk(3)[1]],
    "places in one row beside several rows": lambda z: z[torch.arange(2), z[:1].argmax(1)],
    "rows that are written beside places of fewer axes": lambda z: written(
        z, torch.arange(2)[:, None], z[0].topk(3)[1]
    ),
    "no entries": lambda z: torch.cat((z[:, :0].sort(1)[0], z[:, :0].cummax(1)[0], z), 1),
    "classes that are not counted": lambda z: F.one_hot(z[:, -3:].topk(3)[1]).to(z),
}


@pytest.mark.parametrize("name", OF_ANY_SHAPE)
def test_increments_have_the_shape_of_what_the_step_computes_and_sum_to_its_change(name):
    base, end = points(7, 2, 6)
    mode, found = SecantIncrements(), []
    for kept in torch.eye(12, dtype=torch.float64).view(12, 2, 6):
        with mode:
            result = OF_ANY_SHAPE[name](mode.follow(kept * (end - base), base, end))
        torch.testing.assert_close(mode.point(result)[1], OF_ANY_SHAPE[name](end))
        found.append(result)
    change = OF_ANY_SHAPE[name](end) - OF_ANY_SHAPE[name](base)
    torch.testing.assert_close(torch.stack(found).sum(0), change)
    assert float(change.abs().max()) > 0.1  # the control: it moves


REFUSED = {
    "number": lambda z: z - 0.1 * z.topk(2, 1).indices.to(z.dtype).sum(1, keepdim=True),
    "arithmetic": lambda z: z.gather(1, (z.argsort(1) + 1) % 6),
    "two at once": lambda z: z[z.topk(1, 0).indices[0, :1], z.argmax(1)][:, None] + z,
    "places of places": lambda z: z - z.argsort(1).gather(1, z.argsort(1)),
    "one entry twice": lambda z: torch.zeros_like(z).scatter(1, z.argmax(1, keepdim=True).expand(-1, 2), 1.0),
    "one entry of a vector twice": lambda z: written(z[0], z[0].argmax()[None].expand(2)),
    "a mask beside": lambda z: z[torch.tensor([True, False]), z[0].topk(3)[1]],
    "classes that are found": lambda z: F.one_hot(z.argmax(1)).to(z).mean(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_places_that_move_and_have_no_rule_are_named(name):
    base, end = points(2, 2, 6)
    mode = SecantIncrements()
    with mode, pytest.raises(UnsupportedOperationError, match=r"the state changes|whole numbers"):
        REFUSED[name](mode.follow(end - base, base, end))
