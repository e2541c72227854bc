"""Operators of an earlier run are taken over where the states are the same numbers, and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from unrolled.cells import recurrent
from unrolled.decomposition.recurrences.affine_sequence import expand_layers
from unrolled.expansions.secant import Secant
from unrolled.explanation.strands.known_layers import KnownLayers


def moved(tensor):
    found = tensor.clone()
    found[-1] += 1e-12
    return found


@pytest.mark.parametrize("changed", ["nothing", "inputs", "initial", "image", "origin", "call", "layers"])
def test_layers_are_known_by_all_their_numbers(changed):
    torch.manual_seed(0)
    cells = recurrent("gru", 3, 4, num_layers=2, dtype=torch.float64).cells[0:2]
    below = cells[0].run(torch.randn(5, 2, 3, dtype=torch.float64))
    runs = [below, cells[1].run(cells[0].hidden(below.image))]
    origin, expansions = below.inputs, []

    def expand(layers, start):
        expansions.append(layers)
        return expand_layers(layers, Secant(), 1e-9, start)

    known = KnownLayers()
    first = known.expanded((0, 0), runs, origin, expand)
    again = [replace(run, image=run.image.clone()) for run in runs]
    if changed in ("inputs", "initial", "image"):
        again[1] = replace(again[1], **{changed: moved(getattr(again[1], changed))})
    second = known.expanded(
        (int(changed == "call"), 0),
        again[:1] if changed == "layers" else again,
        moved(origin) if changed == "origin" else origin.clone(),
        expand,
    )
    assert len(expansions) == (1 if changed == "nothing" else 2)
    assert all(one is other for one, other in zip(second.layers, again, strict=False))  # the run's own, also if known
    assert (second.operators is first.operators) == (changed == "nothing")
