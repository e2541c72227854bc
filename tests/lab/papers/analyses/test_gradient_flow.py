"""What flows back, held against autograd, one Jacobian at a time."""

from __future__ import annotations

import random

import pytest
import torch
import torch.nn.functional as F

from unrolled.cells.elman import Elman
from unrolled.cells.gru import GRU
from unrolled.cells.lstm import LSTM
from unrolled.lab.papers.analyses.gradient_flow import bound_per_step, gradient_flow, gradient_norms, jacobian_norms
from unrolled.lab.papers.analyses.sentences import greeting_corpus as second_person
from unrolled.lab.papers.framework.training_loop import WordScorer

TIME, BATCH, SIZE = 7, 3, 5


@pytest.mark.parametrize("cell", [Elman, GRU, LSTM], ids=lambda cell: cell.name)
def test_norms_are_those_of_autograd(cell):
    torch.manual_seed(1)
    network, inputs = cell(4, SIZE).double(), torch.randn(TIME, BATCH, 4, dtype=torch.float64)
    readout = torch.randn(BATCH, SIZE, dtype=torch.float64)
    jacobians, gradients = jacobian_norms(network, inputs), gradient_norms(network, inputs, readout)
    assert jacobians.shape == gradients.shape == (TIME + 1, BATCH)

    states = network.unroll(inputs).detach()
    for distance in range(TIME + 1):
        for each in range(BATCH):

            def last(state, distance=distance, each=each):
                for x in inputs[TIME - distance :, each]:
                    state = network.step(x, state)
                return network.hidden(state)

            matrix = torch.autograd.functional.jacobian(last, states[TIME - distance, each])
            assert torch.allclose(jacobians[distance, each], torch.linalg.svdvals(matrix)[0], atol=1e-12)
            assert torch.allclose(gradients[distance, each], (readout[each] @ matrix).norm(), atol=1e-12)
    assert torch.allclose(jacobians[0], torch.ones(BATCH, dtype=torch.float64))
    assert not torch.allclose(jacobians[1], jacobians[2], rtol=0.01)  # it is not a constant that agrees


@pytest.mark.parametrize(("nonlinearity", "steepest"), [("sigmoid", 0.25), ("tanh", 1.0), ("relu", 1.0)])
def test_the_bound_of_a_plain_cell_is_kept_and_half_of_it_is_not(nonlinearity, steepest):
    torch.manual_seed(2)
    cell = Elman(4, SIZE, nonlinearity=nonlinearity).double()
    cell.initialise_identity()
    assert bound_per_step(cell) == pytest.approx(steepest)
    norms = jacobian_norms(cell, 0.1 * torch.randn(TIME, BATCH, 4, dtype=torch.float64).abs())
    powers = bound_per_step(cell) ** torch.arange(TIME + 1, dtype=torch.float64)
    assert (norms <= powers[:, None] + 1e-12).all()
    assert (norms[1] > 0.5 * powers[1]).all()


def test_a_rectifier_with_the_identity_passes_everything_on_and_a_sigmoid_next_to_nothing():
    torch.manual_seed(3)
    words, answers = second_person.batch(4, 20, random.Random(0))
    arriving = {}
    for nonlinearity in ("relu", "sigmoid"):
        cell = Elman(4, 16, nonlinearity=nonlinearity)
        cell.initialise_identity()
        flow = gradient_flow(WordScorer(len(second_person.VOCABULARY), cell, 8), words, answers, reach=10)
        assert flow.kept
        assert len(flow.jacobian) == len(flow.loss) == 11
        arriving[nonlinearity] = flow.jacobian[10]
    assert arriving["relu"] == pytest.approx(1.0, abs=0.01)
    assert arriving["sigmoid"] < 1e-5


def test_the_gradient_of_the_loss_is_measured_for_each_text_alone():
    torch.manual_seed(4)
    words, answers = second_person.batch(5, 12, random.Random(0))
    model = WordScorer(len(second_person.VOCABULARY), GRU(6, 6), 8).double()
    flow = gradient_flow(model, words, answers, reach=3)
    norms = []
    for each in range(5):
        state = model.hidden(words[:, each : each + 1])[-1].detach().requires_grad_()
        F.cross_entropy(model.output(state), answers[each : each + 1]).backward()
        norms.append(state.grad.norm().item())
    assert flow.loss[0] == pytest.approx(sum(norms) / 5, rel=1e-3)
    assert (flow.bound, flow.kept) == (None, None)  # the bound is of plain cells


def test_numbers_past_all_bounds_are_no_measurement():
    words, answers = second_person.batch(2, 30, random.Random(0))
    cell = Elman(4, 4, nonlinearity="relu")
    with torch.no_grad():
        cell.weight_hh.fill_(1e12)
        cell.weight_ih.fill_(1e12)
    assert gradient_flow(WordScorer(len(second_person.VOCABULARY), cell, 8), words, answers, reach=3) is None
