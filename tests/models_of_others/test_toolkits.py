"""Patterns of speech and policy toolkits: states handed from network to network, log probabilities, deep encoders."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from outside_judge import Model, ids, judge_account, judge_explanation, numbers, one_of

V = 30


class Pictured(nn.Module):
    """The picture starts the hidden state; the memory starts from a parameter."""

    def __init__(self, cells):
        super().__init__()
        self.cells = cells
        self.picture, self.emb, self.start = nn.Linear(3, 6), nn.Embedding(V, 4), nn.Parameter(torch.randn(1, 6))
        self.rnn = nn.LSTMCell(4, 6) if cells else nn.LSTM(4, 6, batch_first=True)
        self.fc = nn.Linear(6, V)

    def forward(self, picture, words):
        h, c = torch.tanh(self.picture(picture)), self.start.expand(len(words), 6)
        x = self.emb(words)
        if not self.cells:
            return self.fc(self.rnn(x, (h[None], c[None].contiguous()))[0])
        outs = []
        for t in range(x.size(1)):
            h, c = self.rnn(x[:, t], (h, c))
            outs.append(self.fc(h))
        return torch.stack(outs, 1)


class Memory(nn.Module):
    """Each half of a final state is changed by a network of its own before the next layer starts from it."""

    def __init__(self):
        super().__init__()
        self.seg = nn.LSTM(3, 4, batch_first=True, bidirectional=True)
        self.hid, self.mem = (nn.LSTM(8, 8, batch_first=True) for _ in range(2))
        self.top = nn.LSTM(8, 4, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        n, k, f = x.shape
        out, (h, c) = self.seg(x.view(n * k // 2, 2, f))

        def over_segments(states, net):
            states = states.transpose(0, 1).reshape(n, -1, 8)
            return (states + net(states)[0]).view(-1, 2, 4).transpose(0, 1).contiguous()

        out, _ = self.top(out, (over_segments(h, self.hid), over_segments(c, self.mem)))
        return self.fc(out.reshape(n, k, 8))


class Policy(nn.Module):
    """An actor that gives the log probability of its action, and the value of the state."""

    def __init__(self):
        super().__init__()
        self.actor, self.critic = nn.LSTM(3, 5, batch_first=True), nn.LSTM(3, 5, batch_first=True)
        self.pi, self.v = nn.Linear(5, 4), nn.Linear(5, 1)

    def forward(self, x):
        choice = torch.distributions.Categorical(logits=self.pi(self.actor(x)[0][:, -1]))
        action = choice.probs.argmax(1)
        return action, self.v(self.critic(x)[0][:, -1]), choice.log_prob(action), choice


class Bounded(nn.Module):
    """Scores of padding are minus infinity, and all scores are bounded from below."""

    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.fc = nn.Embedding(V, 4), nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 1)

    def forward(self, words):
        scores = self.fc(self.rnn(self.emb(words))[0])[..., 0]
        return scores.masked_fill(words == 0, -torch.inf).clamp(min=-100.0).sum(1, keepdim=True)


PICTURE, WORDS, SERIES = numbers(2, 3), ids(2, 4), numbers(1, 6, 3)
MODELS = {
    "a picture starts a network": Model(
        lambda: Pictured(False), (PICTURE, WORDS), lambda out: out[:, -1, 7], (1,), alone=one_of(PICTURE, WORDS)
    ),
    "a picture starts a cell": Model(
        lambda: Pictured(True), (PICTURE, WORDS), lambda out: out[:, -1, 7], (1,), alone=one_of(PICTURE, WORDS)
    ),
    "log probability of an action": Model(
        Policy, (numbers(2, 5, 3),), lambda out: out[2], alone=one_of(numbers(2, 5, 3))
    ),
    "log probability of another action": Model(
        Policy, (numbers(2, 5, 3),), lambda out: out[3].log_prob(torch.tensor(2)), alone=one_of(numbers(2, 5, 3))
    ),
    "value and log probability": Model(
        Policy, (numbers(2, 5, 3),), lambda out: out[1][:, 0] + out[2], alone=one_of(numbers(2, 5, 3))
    ),
    "bounded scores": Model(Bounded, (torch.tensor([[4, 9, 2, 0, 0]]),), 0),
    "memories": Model(Memory, (SERIES,), lambda out: out[:, 2, 1]),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_account_is_right(name):
    judge_account(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_the_explanation_is_right(name):
    judge_explanation(MODELS[name])


def test_the_part_of_a_state_without_value_is_the_initial_states_and_not_lost():
    case = MODELS["a picture starts a network"]
    found = unrolled.account(case.built(), *case.args, target=case.target)
    assert bool((found.initial != 0).all())
    model = case.built()
    with torch.no_grad():
        model.start.zero_()
    assert bool((unrolled.account(model, *case.args, target=case.target).initial == 0).all())


@pytest.mark.parametrize("rnn", ["hid", "mem"])
def test_a_network_that_changes_one_half_of_a_state_is_read_by_a_held_run(rnn):
    case = MODELS["memories"]
    found = unrolled.explain(case.built(), *case.args, target=case.target, rnn=rnn)
    assert not any("ray" in note for note in found.notes)
    assert abs(found.ledger.remainder) < 1e-12
