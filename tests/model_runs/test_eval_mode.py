"""A network is opened as it is in evaluation mode and without autocast, as its pre-hooks leave it, and is not changed.

The network in evaluation mode, opened outside of autocast, judges.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, spectral_norm

import unrolled
from unrolled.cells import CELLS, recurrent
from unrolled.cells.base import Cell
from unrolled.cells.recurrent import Recurrent
from unrolled.lab.training.spectral_norm import normalise_spectrum
from unrolled.model_runs.eval_mode import eval_copy, eval_mode

B, T, E, D = 2, 5, 3, 4
X = torch.randn(T, B, E, generator=torch.Generator().manual_seed(0))


class Dropping(Cell):
    """A cell that drops at every step, and normalises a weight of its own, in training."""

    name = "dropping"

    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size)
        self.mix = parametrizations.spectral_norm(nn.Linear(input_size + hidden_size, hidden_size))
        self.drop = nn.Dropout(0.5)

    def step(self, inputs, state):
        return torch.tanh(F.dropout(self.drop(self.mix(torch.cat((inputs, state), dim=-1))), 0.3, self.training))


def torch_gru(norm):
    network = nn.GRU(E, D, 2, dropout=0.5)
    norm(network, "weight_hh_l0")
    return network


NETWORKS = {
    **{
        name: lambda name=name: normalise_spectrum(recurrent(name, E, D, 2))
        for name in ("elman", "gru", "lstm", "mmlstm", "mvma_g")
    },
    "torch, spectral": lambda: torch_gru(parametrizations.spectral_norm),
    "torch, weight": lambda: torch_gru(parametrizations.weight_norm),
    "dropping": lambda: Recurrent(Dropping, E, D, 2),
    "dropping cell": lambda: Dropping(E, D),
}


def everything(found):
    weight = torch.ones(D)
    return found.states(), found.vectors(), found.scores(weight), found.final_scores(weight), found.context()


@pytest.mark.quick_diagonal(3)  # quick: every network, every expansion
@pytest.mark.parametrize("expansion", ["path", "operating", "zero", "taylor(2)"])
@pytest.mark.parametrize("name", NETWORKS)
def test_in_training_it_is_opened_as_in_evaluation_and_left_as_it_was(name, expansion):
    torch.manual_seed(3)
    network = NETWORKS[name]().train()
    list(network.modules())[1].training = False  # a part that the user froze stays frozen, its own parts do not
    before = {key: value.clone() for key, value in network.state_dict().items()}
    modes, seed = [each.training for each in network.modules()], torch.get_rng_state()
    found = unrolled.decompose(network, X, expansion=expansion)
    read = everything(found)  # later, and in training mode
    assert modes == [each.training for each in network.modules()]
    assert torch.equal(seed, torch.get_rng_state())
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())
    assert expansion in ("zero", "taylor(2)") or found.residual().max() < 1e-5
    judge = everything(unrolled.decompose(network.eval(), X, expansion=expansion))
    for mine, its in zip(read, judge, strict=True):
        torch.testing.assert_close(mine, its)


@pytest.mark.parametrize("name", ["gru", "torch, spectral", "dropping"])
def test_the_control_these_networks_do_change_in_training(name):
    network = NETWORKS[name]().train()
    before = {key: value.clone() for key, value in network.state_dict().items()}
    network(X)
    assert any(not torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_every_module_gets_its_own_mode_back_even_after_an_error():
    network = Recurrent(Dropping, E, D, 2)
    network.cell(0, 0).drop.eval()
    modes = [each.training for each in network.modules()]

    def fail():
        with eval_mode(network):
            assert not any(each.training for each in network.modules())
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert [each.training for each in network.modules()] == modes
    assert len(set(modes)) == 2


@pytest.mark.parametrize("name", CELLS.names())
def test_a_twin_shares_its_weights_and_nothing_of_its_mode(name):
    cell = CELLS.get(name)(E, 2 * E)
    twin = eval_copy(cell)
    assert type(twin) is type(cell)
    assert [id(p) for p in twin.parameters()] == [id(p) for p in cell.parameters()]
    assert not any(each.training for each in twin.modules())
    assert all(each.training for each in cell.modules())


def test_weights_that_a_hook_makes_are_those_of_the_next_call():
    for norm, moved in ((old_weight_norm, "weight_hh_l0_g"), (spectral_norm, "weight_hh_l0_orig")):
        torch.manual_seed(0)
        rnn = norm(nn.GRU(E, D), "weight_hh_l0")
        old = unrolled.decompose(rnn, X).vectors()
        with torch.no_grad():
            getattr(rnn, moved).mul_(3)
            rnn.bias_hh_l0.fill_(0.5)
        found = unrolled.decompose(rnn, X)
        torch.testing.assert_close(found.states().transpose(0, 1), rnn.eval()(X)[0].detach())
        assert found.residual().max() < 1e-5
        assert not torch.allclose(found.vectors(), old, atol=1e-3)
        assert rnn.weight_hh_l0.grad_fn is not None  # what the hook left can be trained


def old_weight_norm(module, name):
    with pytest.warns(FutureWarning, match="weight_norm"):
        return torch.nn.utils.weight_norm(module, name)


@pytest.mark.parametrize("named", [False, True])
def test_a_hook_before_the_forward_pass_may_change_what_comes_in(named):
    rnn, start = nn.GRU(E, D), torch.ones(1, B, D)
    if named:
        rnn.register_forward_pre_hook(lambda _, args, __: ((2 * args[0],), {"hx": start}), with_kwargs=True)
    else:
        rnn.register_forward_pre_hook(lambda _, args: (2 * args[0], start))
    rnn.register_forward_hook(lambda *_: pytest.fail("a forward hook was run"))
    found = unrolled.decompose(rnn, X)
    own = rnn.forward(2 * X, start)[0].detach()
    torch.testing.assert_close(found.states().transpose(0, 1), own)
    assert found.initial().any()
    assert len(rnn._forward_pre_hooks) == len(rnn._forward_hooks) == 1


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM", "lstm", "mmlstm", "mvma_g"])
def test_autocast_is_off_while_a_network_is_opened_and_read(name):
    torch.manual_seed(1)
    network = getattr(nn, name)(E, D, 2) if name.isupper() else recurrent(name, E, D, 2)
    judge = everything(unrolled.decompose(network, X))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = unrolled.decompose(network, X)
        read = everything(found)
        assert found.parity < 1e-6
        assert found.residual().max() < 1e-5
        assert torch.is_autocast_enabled("cpu")
        assert (X[0] @ X[0].T).dtype == torch.bfloat16  # the control
        half = unrolled.decompose(network, X.bfloat16())  # as a layer below would give them
    for mine, its in zip(read, judge, strict=True):
        assert torch.equal(mine, its)
    assert half.vectors().dtype == torch.float32
    torch.testing.assert_close(half.vectors(), judge[1], rtol=0.05, atol=0.05)
