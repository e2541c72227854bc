"""Recurrent networks above one another, written by hand: residual stacks, weight drop, norms between the layers."""

from __future__ import annotations

import pytest
import torch
from tests.reference_secant import gru_step, terms
from torch import nn
from torch.nn.functional import dropout

import unrolled

V, E, T = 11, 5, 6
IDS = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]])


class Stack(nn.Module):
    """GRUs of one width; ``between`` makes what a layer reads of the layers below, lowest first."""

    def __init__(self, layers, between):
        super().__init__()
        self.embed, self.head = nn.Embedding(V, E), nn.Linear(E, 3)
        self.rnns = nn.ModuleList(nn.GRU(E, E, batch_first=True) for _ in range(layers))
        self.norm, self.between = nn.LayerNorm(E), between
        self.double().eval()

    def forward(self, ids):
        read = [self.embed(ids)]
        for k, rnn in enumerate(self.rnns):
            read.append(rnn(read[-1] if k == 0 else self.between(self, read))[0])
        return self.head(read[-1].mean(1))


def plain(_, read):
    return read[-1]


def dropped(model, read):
    return dropout(read[-1], 0.4, model.training)


def residual(_, read):
    return read[-1] + read[-2] if len(read) > 2 else read[-1]


def normed(model, read):
    return model.norm(read[-1])


def of_words_too(_, read):
    return read[-1] + read[0]


@pytest.mark.parametrize("between", [plain, dropped])
def test_a_stack_by_hand_is_the_network_of_several_layers(between):
    torch.manual_seed(0)
    model = Stack(3, between)

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = model.embed, model.head
            self.net = nn.GRU(E, E, 3, batch_first=True).double()
            for level, rnn in enumerate(model.rnns):
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    setattr(self.net, f"{name}_l{level}", getattr(rnn, f"{name}_l0"))

        def forward(self, ids):
            return self.head(self.net(self.embed(ids))[0].mean(1))

    pairs = zip(
        unrolled.explain_batch(model, IDS, target=1), unrolled.explain_batch(Plain(), IDS, target=1), strict=True
    )
    for found, expected in pairs:
        assert len(found.sequences) == 1
        torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, atol=1e-13, rtol=0)
        torch.testing.assert_close(found.triangle.scores, expected.triangle.scores, atol=1e-13, rtol=0)
        assert found.ledger == pytest.approx(expected.ledger, abs=1e-12)


@pytest.mark.parametrize("between", [residual, normed, of_words_too])
def test_the_n_grams_of_a_stack_are_those_of_the_formulas(between):
    torch.manual_seed(0)
    model = Stack(2, between)
    found = unrolled.explain(model, IDS[:1], target=1)
    assert len(found.sequences) == 1
    low, top = model.rnns
    weights = [
        [getattr(rnn, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")] for rnn in (low, top)
    ]
    h1 = h2 = torch.zeros(E, dtype=torch.float64)
    gs, matrices = [], []
    with torch.no_grad():
        for x in model.embed(IDS[0]):
            g1, a1, _ = gru_step(*weights[0], x, x, h1)
            new = g1 + a1 @ h1
            link, rest = torch.eye(E, dtype=torch.float64), torch.zeros(E, dtype=torch.float64)
            if between is normed:  # γ (h - mean h) / σ + β with σ held
                scale = model.norm.weight / (new.var(unbiased=False) + model.norm.eps).sqrt()
                link, rest = torch.diag(scale) @ (link - 1 / E), model.norm.bias
            if between is of_words_too:
                rest = x
            g2, a2, c2 = gru_step(*weights[1], link @ g1 + rest, link @ new + rest, h2)
            gs.append(torch.cat((g1, g2)))
            matrices.append(torch.cat((torch.cat((a1, torch.zeros_like(a1)), 1), torch.cat((c2 @ link @ a1, a2), 1))))
            h1, h2 = new, g2 + a2 @ h2 + c2 @ link @ a1 @ h1
    w = model.head.weight[1].detach() / T
    for (i, t), v in terms(gs, matrices).items():
        assert found.contribution(i, t + 1) == pytest.approx(float(w @ v[E:]), abs=1e-13)
    assert abs(found.ledger.remainder) < 1e-13


def test_a_stack_whose_lower_layer_is_read_as_well():
    class Both(Stack):
        def forward(self, ids):
            low = self.rnns[0](self.embed(ids))[0]
            return self.head(self.rnns[1](low)[0][:, -1] + torch.softmax(low, 1).mul(low).sum(1))

    torch.manual_seed(0)
    found = unrolled.explain(Both(2, plain), IDS[:1], target=1)
    assert len(found.sequences) == 1
    assert abs(found.ledger.remainder) < 1e-13


def test_layers_that_mix_positions_between_them_are_a_sequence_each():
    class Mixes(Stack):
        def forward(self, ids):
            low = self.rnns[0](self.embed(ids))[0]
            return self.head(self.rnns[1](low.cumsum(1) / 10)[0][:, -1])

    torch.manual_seed(0)
    found = unrolled.explain(Mixes(2, plain), IDS[:1], target=1)
    assert [each.name for each in found.sequences] == ["rnns.0", "rnns.1"]
    assert abs(found.ledger.remainder) < 1e-13


class WeightDrop(nn.Module):
    """Sets the recurrent weights of a network in its forward pass, as weight-dropped language models do."""

    def __init__(self, module, share):
        super().__init__()
        self.module, self.share = module, share
        self.raw = nn.Parameter(module.weight_hh_l0.data)
        del module._parameters["weight_hh_l0"]

    def forward(self, x):
        self.module.weight_hh_l0 = dropout(self.raw, self.share, self.training)
        return self.module(x)


def test_a_weight_dropped_language_model_is_one_stack():
    class LanguageModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(V, E), nn.Linear(E, V)
            sizes = ((E, 7), (7, 7), (7, E))
            self.rnns = nn.ModuleList(WeightDrop(nn.LSTM(a, b), 0.5) for a, b in sizes)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            x = dropout(self.embed(ids), 0.1, self.training)
            for rnn in self.rnns:
                x = dropout(rnn(x)[0], 0.3, self.training)
            return self.head(x)

    torch.manual_seed(0)
    found = unrolled.explain(LanguageModel().double(), IDS[:1].T, target=lambda out: out[-1, :, 3])
    assert found.tokens == tuple(map(str, IDS[0].tolist()))
    assert len(found.sequences) == 1
    assert abs(found.ledger.remainder) < 1e-13


def test_zero_leaves_a_remainder_in_a_stack():
    torch.manual_seed(0)
    assert abs(unrolled.explain(Stack(2, normed), IDS[:1], target=1, expansion="zero").ledger.remainder) > 1e-5
