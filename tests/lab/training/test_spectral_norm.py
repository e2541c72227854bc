"""Spectral normalisation: every recurrent matrix has norm one, whatever the weight that is trained."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.linalg import matrix_norm
from torch.nn.utils.parametrizations import spectral_norm

from unrolled.cells import CELLS, recurrent
from unrolled.composition import ENCODERS
from unrolled.errors import UsageError
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.spectral_norm import normalise_spectrum


def norms(module):
    """The largest singular value of each stacked matrix."""
    return matrix_norm(module.weight_hh.detach().unflatten(0, (-1, module.hidden_size)), ord=2)


def settled(module):
    """Let the power iteration run its course."""
    for _ in range(300):
        module.weight_hh  # noqa: B018  # asking is what takes a step
    return module


@pytest.mark.parametrize("name", ["gru", "lstm", "mvma_g", "approx_lstm", "mi_lstm"])
def test_each_matrix_has_norm_one(name):
    torch.manual_seed(0)
    cell = CELLS.get(name)(3, 6).double()
    assert (norms(cell) - 1).abs().max() > 0.1  # the control
    assert normalise_spectrum(cell) is cell
    torch.testing.assert_close(norms(settled(cell)), torch.ones(len(norms(cell))).double())


def test_torchs_own_would_normalise_the_stack():
    torch.manual_seed(0)
    cell = spectral_norm(CELLS.get("lstm")(3, 6).double(), "weight_hh")
    assert norms(settled(cell)).max() < 0.99


@pytest.mark.parametrize("name", ["gru", "lstm", "mi_lstm"])
def test_together_the_stack_has_norm_one_as_torchs_own(name):
    torch.manual_seed(0)
    cell = CELLS.get(name)(3, 6).double()
    theirs = settled(spectral_norm(copy.deepcopy(cell), "weight_hh")).weight_hh
    ours = settled(normalise_spectrum(cell, together=True)).weight_hh
    torch.testing.assert_close(ours, theirs)
    assert float(matrix_norm(ours.detach(), ord=2)) == pytest.approx(1)
    assert norms(cell).max() < 0.99  # the control


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_together_the_matrices_of_a_layer_of_torch_are(kind):
    network = normalise_spectrum(kind(3, 6, num_layers=2).double(), together=True)
    for _ in range(300):
        network(torch.randn(1, 2, 3).double())
    for name in ("weight_hh_l0", "weight_hh_l1"):
        assert float(matrix_norm(getattr(network, name).detach(), ord=2)) == pytest.approx(1)


def test_to_normalise_together_one_has_to_normalise():
    with pytest.raises(UsageError, match="spectral_stack is set, but spectral is not"):
        TrainingSettings(spectral_stack=True)
    assert "spectral_stack" not in TrainingSettings(spectral=True).model_dump(mode="json")  # earlier trials' keys


def test_one_matrix_is_normalised_as_torch_does():
    torch.manual_seed(0)
    cell = CELLS.get("elman")(3, 6).double()
    linear = nn.Linear(6, 6, bias=False).double()
    with torch.no_grad():
        linear.weight.copy_(cell.weight_hh)
    ours, theirs = settled(normalise_spectrum(cell)).weight_hh, spectral_norm(linear, n_power_iterations=300).weight
    torch.testing.assert_close(ours, theirs)


def test_a_layout_of_whole_networks_and_encoders():
    network = normalise_spectrum(recurrent("gru", 3, 4, num_layers=2, bidirectional=True))
    assert sum("original" in name for name, _ in network.named_parameters()) == 4
    for name in ("va_ew", "mvm_g", "mvma_me"):
        encoder = normalise_spectrum(ENCODERS.get(name)(3, 4))
        assert torch.isfinite(encoder(torch.randn(2, 5, 3))[0]).all()


@pytest.mark.parametrize("kind", [nn.GRU, *(pytest.param(each, marks=pytest.mark.slow) for each in (nn.RNN, nn.LSTM))])
def test_torch_networks_compute_with_normalised_weights(kind):
    torch.manual_seed(0)
    network = kind(3, 6, num_layers=2, bidirectional=True).double()
    names = [name for name, _ in network.named_parameters() if name.startswith("weight_hh")]
    assert len(names) == 4
    x = torch.randn(5, 2, 3).double()
    before = network(x)[0]
    normalise_spectrum(network)
    for _ in range(300):
        network(x)
    network.eval()
    plain = kind(3, 6, num_layers=2, bidirectional=True).double()
    with torch.no_grad():
        for name, weight in plain.named_parameters():
            weight.copy_(getattr(network, name))
            if name in names:
                found = matrix_norm(weight.unflatten(0, (-1, 6)), ord=2)
                torch.testing.assert_close(found, torch.ones_like(found))
    torch.testing.assert_close(network(x)[0], plain(x)[0])
    assert not torch.allclose(network(x)[0], before)
    network(x)[0].sum().backward()
    assert all(network.get_parameter(f"parametrizations.{name}.original").grad.abs().sum() > 0 for name in names)


def test_it_trains_and_the_norm_stays_and_evaluation_leaves_it_alone():
    torch.manual_seed(0)
    cell = normalise_spectrum(CELLS.get("mvma_g")(3, 4).double())
    optimiser = torch.optim.SGD(cell.parameters(), lr=0.1)
    x = torch.randn(5, 2, 3).double()
    before = cell.parametrizations.weight_hh.original.detach().clone()
    for _ in range(20):
        optimiser.zero_grad()
        cell.unroll(x).square().sum().backward()
        optimiser.step()
    assert not torch.equal(before, cell.parametrizations.weight_hh.original)
    torch.testing.assert_close(norms(settled(cell)), torch.ones(3).double())
    cell.eval()
    assert torch.equal(cell.weight_hh, cell.weight_hh)
    saved = {key: value.clone() for key, value in cell.state_dict().items()}
    other = normalise_spectrum(CELLS.get("mvma_g")(3, 4).double()).eval()
    other.load_state_dict(saved)
    assert torch.equal(other.unroll(x), cell.unroll(x))


def test_the_gradient_is_that_of_the_quotient():
    torch.manual_seed(0)
    cell = normalise_spectrum(CELLS.get("elman")(3, 4).double()).eval()
    weight = cell.parametrizations.weight_hh.original
    parametrization = cell.parametrizations.weight_hh[0]
    assert torch.autograd.gradcheck(parametrization, (weight,))


def test_a_module_without_a_recurrent_weight_says_so():
    with pytest.raises(UsageError, match="no weight_hh in Linear: spectral normalisation needs a recurrent cell"):
        normalise_spectrum(nn.Linear(3, 4))
