"""Errors of single steps, against a plain loop and automatic differentiation."""

from __future__ import annotations

import pytest
import torch

from unrolled.decomposition.decomposition import decompose
from unrolled.errors import UsageError
from unrolled.lab.papers.analyses.step_error import step_errors

KINDS = [torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM]
LENGTHS = [6, 4]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def rnn(request):
    torch.manual_seed(0)
    network = request.param(3, 5, batch_first=True).double()
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(3)  # far from linear
    return network


def by_autograd(rnn, inputs):
    """The paper's equations, letter by letter: a Jacobian at zero, and the network's own state before each step."""
    parts = 2 if isinstance(rnn, torch.nn.LSTM) else 1
    size = rnn.hidden_size

    def step(x, state):
        split = tuple(part.view(1, 1, -1) for part in state.view(parts, size).flip(0))  # torch has h before c
        _, after = rnn(x.view(1, 1, -1), split if parts == 2 else split[0])
        return torch.cat([after[1].flatten(), after[0].flatten()]) if parts == 2 else after.flatten()

    state, zero, errors = inputs.new_zeros(parts * size), inputs.new_zeros(parts * size), []
    for x in inputs:
        jacobian = torch.autograd.functional.jacobian(lambda before, x=x: step(x, before), zero)
        guess, state = (step(x, zero) + jacobian @ state)[-size:], step(x, state).detach()
        errors.append(((guess - state[-size:]).norm() / state[-size:].norm()).item())
    return errors


def test_the_error_of_the_expansion_at_zero_is_that_of_the_papers_equation(rnn):
    inputs = torch.randn(2, 6, 3, dtype=torch.float64)
    found = step_errors(decompose(rnn, inputs, LENGTHS, expansion="zero"))
    for row, length, errors in zip(inputs, LENGTHS, found, strict=True):
        assert errors[:length].tolist() == pytest.approx(by_autograd(rnn, row[:length]), abs=1e-12)
        assert errors[length:].abs().sum() == 0
    assert found[:, 0].max() < 1e-12  # from nothing the first step is exact
    assert found.max() > 0.05


@pytest.mark.parametrize("expansion", ["path", "operating"])
def test_exact_expansions_make_no_error_and_the_linear_activations_do(rnn, expansion):
    inputs = torch.randn(2, 6, 3, dtype=torch.float64)
    assert step_errors(decompose(rnn, inputs, LENGTHS, expansion=expansion, tolerance=1e-9)).max() < 1e-9
    assert step_errors(decompose(rnn, inputs, LENGTHS, expansion="activation"))[:, 0].min() > 1e-3


@pytest.mark.parametrize("options", [{"num_layers": 2}, {"bidirectional": True}], ids=str)
def test_only_one_layer_in_one_direction_has_a_single_step(options):
    rnn = torch.nn.GRU(3, 5, batch_first=True, **options)
    with pytest.raises(UsageError, match="one layer"):
        step_errors(decompose(rnn, torch.randn(1, 4, 3), expansion="zero"))
