"""The sweeps in place against one operator a step."""

from __future__ import annotations

import pytest
import torch

from unrolled.cells import CELLS
from unrolled.linalg.sweep_back import sweep_back
from unrolled.linalg.sweep_forward import sweep_forward

T, B = 6, 3


def operator_of(name, expansion):
    torch.manual_seed(0)
    inputs = 6 if name == "memorising" else 3
    cell = CELLS.get(name)(inputs, 6, **({"proj_size": 2} if expansion == "projected" else {})).double()
    cell.requires_grad_(False)
    ray = cell.run(torch.randn(T, B, inputs).double(), 0.3 * torch.randn(B, cell.state_size).double()).ray(
        torch.randn(T, B, inputs).double()
    )
    return ray.at(1.0) if expansion == "operating" else ray.secant(), cell.state_size


OPERATORS = [*((name, kind) for name in CELLS.names() for kind in ("operating", "secant")), ("lstm", "projected")]


@pytest.mark.parametrize(("name", "expansion"), OPERATORS)
def test_a_sweep_forward_in_place_equals_operators(name, expansion):
    operator, size = operator_of(name, expansion)
    given, initial = torch.randn(T, B, size).double(), torch.randn(B, size).double()
    expected, s = [], initial
    for t in range(T):
        s = given[t] + operator.at(t).apply(s[None])[0]
        expected.append(s)
    found = given.clone()
    sweep_forward(operator, found, initial)
    torch.testing.assert_close(found, torch.stack(expected))
    assert name == "memorising" or not torch.allclose(found, given)


@pytest.mark.parametrize(("name", "expansion"), OPERATORS)
def test_a_sweep_in_place_equals_transposed_operators(name, expansion):
    operator, size = operator_of(name, expansion)
    given = torch.randn(T, B, size).double()
    expected, of_inputs, u = [], [], torch.zeros(B, size).double()
    for t in reversed(range(T)):
        u = u + given[t]
        expected.insert(0, u)
        _, of_input = operator.at(t).apply_transpose(u[None])
        of_inputs.insert(0, of_input)
        u = operator.at(t).apply_transpose(u[None], with_inputs=False)[0][0]
    found = given.clone()
    initial, by_input = sweep_back(operator, found, with_inputs=True)
    torch.testing.assert_close(found, torch.stack(expected))
    torch.testing.assert_close(initial, u)
    if by_input is None:  # C is zero
        assert of_inputs == [None] * T
    else:
        torch.testing.assert_close(by_input, torch.cat(of_inputs))
    alone = given.clone()
    assert sweep_back(operator, alone)[1] is None
    assert torch.equal(alone, found)
    several = torch.stack((given, 2 * given), dim=1)  # two columns at once
    of_several, by_inputs = sweep_back(operator, several, with_inputs=True)
    torch.testing.assert_close(several, torch.stack((found, 2 * found), dim=1))
    torch.testing.assert_close(of_several, torch.stack((initial, 2 * initial)))
    if by_inputs is not None:
        torch.testing.assert_close(by_inputs, torch.stack((by_input, 2 * by_input), dim=1))
    # the control: the steps do reach each other, but where a memory of whole inputs is full
    assert name == "memorising" or not torch.allclose(found, given)
