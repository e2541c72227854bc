"""Each softmax at the end of a model is followed, however many there are and whatever is beside them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

V, E = 9, 4
IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])


class LastState(nn.Module):
    def __init__(self, rnn):
        super().__init__()
        self.rnn = rnn

    def forward(self, x):
        return self.rnn(x)[0][:, -1]


class TwoHeads(nn.Module):
    """Returns the probabilities of two heads side by side, the second as logits if it is asked to."""

    def __init__(self, second):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn = nn.Embedding(20, 4), nn.GRU(4, 4, batch_first=True)
        self.first, self.second, self.of_second = nn.Linear(4, 3), nn.Linear(4, 3), second
        self.double()

    def forward(self, tokens):
        h = self.rnn(self.embed(tokens))[0][:, -1]
        return torch.stack([self.first(h).softmax(-1), self.of_second(self.second(h))], dim=1)


@pytest.mark.parametrize("second", [lambda z: z.softmax(-1), lambda z: z])
def test_a_softmax_beside_another_output_is_followed_as_one_alone(second):
    model, tokens = TwoHeads(second), torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
    alone = nn.Sequential(model.embed, LastState(model.rnn), model.first, nn.Softmax(-1))
    found = unrolled.account(model, tokens, target=lambda out: out[:, 0, 1])
    expected = unrolled.account(alone, tokens, target=lambda out: out[:, 1])
    torch.testing.assert_close(found.tokens, expected.tokens, rtol=0, atol=1e-12)
    assert "the target is a result of softmax" in " ".join(found.notes)
    assert float(found.tokens.abs().min()) > 0
    for one, other in zip(
        unrolled.explain_batch(model, tokens, target=lambda out: out[:, 0, 1]),
        unrolled.explain_batch(alone, tokens, target=lambda out: out[:, 1]),
        strict=True,
    ):
        torch.testing.assert_close(one.token_scores, other.token_scores, rtol=0, atol=1e-9)


class Member(nn.Module):
    """Weighs its words by attention, in the middle, and gives probabilities."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.embed, self.query, self.head = nn.Embedding(V, E), nn.Linear(E, 1), nn.Linear(E, 3)
        self.rnn = nn.GRU(E, E, batch_first=True)
        self.double()

    def forward(self, ids):
        states = self.rnn(self.embed(ids))[0]
        return self.head((self.query(states).softmax(1) * states).sum(1)).softmax(-1)


class Ensemble(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.weights, self.members = weights, nn.ModuleList(map(Member, range(3)))

    def forward(self, ids):
        return sum(weight * member(ids) for weight, member in zip(self.weights, self.members, strict=True))


def test_all_members_of_an_ensemble_are_followed_and_attention_inside_them_is_not():
    model = Ensemble((0.5, -0.25, 0.75))
    found = unrolled.account(model, IDS, target=1)
    alone = [unrolled.account(member, IDS, target=1).tokens for member in model.members]
    expected = sum(weight * each for weight, each in zip(model.weights, alone, strict=True))
    torch.testing.assert_close(found.tokens, expected, rtol=0, atol=1e-12)
    assert "softmax" not in found.constants
    twice = Ensemble([2 * weight for weight in model.weights])
    for whole, double in zip(*(unrolled.explain_batch(each, IDS, target=1) for each in (model, twice)), strict=True):
        assert len(whole.sequences) == 3
        assert all(bool((each.token_scores != 0).all()) for each in whole.sequences)
        torch.testing.assert_close(2 * whole.token_scores, double.token_scores, rtol=0, atol=1e-9)


class Around(nn.Module):
    """A network and a layer, with functions before and behind them."""

    def __init__(self, before, behind):
        super().__init__()
        self.rnn, self.head, self.before, self.behind = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2), before, behind
        self.double()

    def forward(self, x):
        return self.behind(self.head(self.rnn(self.before(x))[0][:, -1]))


FUNCTIONS = {"log": torch.log, "exp": torch.exp, "softmax": lambda x: x.softmax(-1)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_logit_of_what_a_function_makes_of_the_inputs_is_not_called_its_result(name):
    x = torch.linspace(0.5, 2.0, 12).view(1, 4, 3).double()
    before = unrolled.account(Around(FUNCTIONS[name], nn.Identity()), x, target=0).notes
    assert f"contributions pass through results of {name}, " in " ".join(before)
    assert "not a logit" not in " ".join(before)


@pytest.mark.parametrize("name", ["exp", "softmax"])
def test_the_result_of_a_function_at_the_end_is_called_that(name):
    x = torch.linspace(0.5, 2.0, 12).view(1, 4, 3).double()
    behind = unrolled.account(Around(nn.Identity(), FUNCTIONS[name]), x, target=0).notes
    assert f"the target is a result of {name}, not a logit" in " ".join(behind)
