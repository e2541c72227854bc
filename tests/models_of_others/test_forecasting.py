# ruff: noqa: E741  # the models are written as users write them
"""Forecasts: scaling, skips, two attentions, values fed back, sampling, series described by a number."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from outside_judge import Model, ids, judge_account, judge_explanation, numbers, one_of

V = 30


class DeepAR(nn.Module):
    def __init__(self, sample=False):
        super().__init__()
        self.sample = sample
        self.emb = nn.Embedding(5, 3)
        self.lstm = nn.LSTM(1 + 2 + 3, 6, 2, dropout=0.1)
        self.relu = nn.ReLU()
        self.mu = nn.Linear(12, 1)
        self.pre = nn.Linear(12, 1)
        self.sig = nn.Softplus()
        for n in ("bias_hh_l0", "bias_hh_l1"):
            b = getattr(self.lstm, n)
            b.data[6:12].fill_(1.0)

    def step(self, x, idx, h, c):
        e = self.emb(idx)
        x = torch.cat((x, e), 1).unsqueeze(0)
        _o, (h, c) = self.lstm(x, (h, c))
        hp = h.permute(1, 2, 0).contiguous().view(h.shape[1], -1)
        return (self.mu(hp).squeeze(1), self.sig(self.pre(hp)).squeeze(1), h, c)

    def forward(self, z, cov, idx, horizon=3):
        b, T = z.shape
        scale = z[:, :T].abs().mean(1) + 1
        z = z / scale[:, None]
        h = c = torch.zeros(2, b, 6, dtype=z.dtype)
        for t in range(T):
            mu, s, h, c = self.step(torch.cat([z[:, t : t + 1], cov[:, t]], 1), idx, h, c)
        outs = []
        for t in range(T, T + horizon):
            outs.append(mu * scale)
            nxt = torch.distributions.Normal(mu, s).sample() if self.sample else mu
            mu, s, h, c = self.step(torch.cat([nxt[:, None], cov[:, t]], 1), idx, h, c)
        return torch.stack(outs, 1)


class Seq2Seq(nn.Module):
    def __init__(self, tf=0.0):
        super().__init__()
        self.tf = tf
        self.enc = nn.GRU(2, 5, batch_first=True)
        self.dec = nn.GRU(1, 5, batch_first=True)
        self.fc = nn.Linear(5, 1)

    def forward(self, x, y=None, horizon=3):
        _, h = self.enc(x)
        inp = x[:, -1:, :1]
        outs = []
        for t in range(horizon):
            o, h = self.dec(inp, h)
            p = self.fc(o)
            outs.append(p)
            if y is not None and torch.rand(1).item() < self.tf:
                inp = y[:, t : t + 1]
            else:
                inp = p
        return torch.cat(outs, 1).squeeze(-1)


class LSTNet(nn.Module):
    def __init__(self, out=None):
        super().__init__()
        self.P, self.m, self.hidR, self.hidC, self.hidS, self.Ck, self.skip, self.hw = (12, 3, 5, 4, 2, 3, 2, 4)
        self.pt = (self.P - self.Ck) // self.skip
        self.conv1 = nn.Conv2d(1, 4, (3, 3))
        self.GRU1 = nn.GRU(4, 5)
        self.dropout = nn.Dropout(0.2)
        self.GRUskip = nn.GRU(4, 2)
        self.linear1 = nn.Linear(5 + 2 * 2, 3)
        self.highway = nn.Linear(4, 1)
        self.output = out

    def forward(self, x):
        b = x.size(0)
        c = x.view(-1, 1, self.P, self.m)
        c = F.relu(self.conv1(c))
        c = self.dropout(c)
        c = torch.squeeze(c, 3)
        r = c.permute(2, 0, 1).contiguous()
        _, r = self.GRU1(r)
        r = self.dropout(torch.squeeze(r, 0))
        s = c[:, :, int(-self.pt * self.skip) :].contiguous()
        s = s.view(b, self.hidC, self.pt, self.skip)
        s = s.permute(2, 0, 3, 1).contiguous()
        s = s.view(self.pt, b * self.skip, self.hidC)
        _, s = self.GRUskip(s)
        s = s.view(b, self.skip * self.hidS)
        s = self.dropout(s)
        r = torch.cat((r, s), 1)
        res = self.linear1(r)
        z = x[:, -self.hw :, :]
        z = z.permute(0, 2, 1).contiguous().view(-1, self.hw)
        z = self.highway(z)
        z = z.view(-1, self.m)
        res = res + z
        return self.output(res) if self.output else res


class DARNNCells(nn.Module):
    def __init__(self, T=3, n=3, h=4):
        super().__init__()
        self.T, self.n, self.h = (T, n, h)
        self.cell = nn.LSTMCell(n, h)
        self.We = nn.Linear(2 * h, T, bias=False)
        self.Ue = nn.Linear(T, T, bias=False)
        self.ve = nn.Linear(T, 1, bias=False)
        self.dcell = nn.LSTMCell(1, h)
        self.Wd = nn.Linear(2 * h, h, bias=False)
        self.Ud = nn.Linear(h, h, bias=False)
        self.vd = nn.Linear(h, 1, bias=False)
        self.w = nn.Linear(h + 1, 1)
        self.out = nn.Linear(2 * h, 1)

    def forward(self, x, y):
        h = torch.zeros(len(x), self.h).to(x)
        s = torch.zeros_like(h)
        hs = []
        for t in range(self.T):
            e = self.ve(torch.tanh(self.We(torch.cat([h, s], 1)).unsqueeze(1) + self.Ue(x.transpose(1, 2)))).squeeze(2)
            a = torch.softmax(e, 1)
            h, s = self.cell(a * x[:, t], (h, s))
            hs.append(h)
        H = torch.stack(hs, 1)
        d = torch.zeros_like(h)
        sd = torch.zeros_like(h)
        for t in range(self.T):
            l = self.vd(torch.tanh(self.Wd(torch.cat([d, sd], 1)).unsqueeze(1) + self.Ud(H)))
            c = (torch.softmax(l, 1) * H).sum(1)
            d, sd = self.dcell(self.w(torch.cat([c, y[:, t : t + 1]], 1)), (d, sd))
        return self.out(torch.cat([d, c], 1)).squeeze(1)


class LSTMAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.e1 = nn.LSTM(3, 6, batch_first=True)
        self.e2 = nn.LSTM(6, 4, batch_first=True)
        self.d1 = nn.LSTM(4, 4, batch_first=True)
        self.d2 = nn.LSTM(4, 6, batch_first=True)
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        z, _ = self.e1(x)
        _, (z, _) = self.e2(z)
        z = z[-1].unsqueeze(1).repeat(1, x.size(1), 1)
        z, _ = self.d1(z)
        z, _ = self.d2(z)
        return self.out(z)


class SineCells(nn.Module):
    """pytorch examples' time_sequence_prediction style: two cells, future"""

    def __init__(self):
        super().__init__()
        self.l1 = nn.LSTMCell(1, 5)
        self.l2 = nn.LSTMCell(5, 5)
        self.linear = nn.Linear(5, 1)

    def forward(self, input, future=0):
        outs = []
        z = lambda: torch.zeros(input.size(0), 5, dtype=torch.double).to(input)
        h, c, h2, c2 = (z(), z(), z(), z())
        for t in input.split(1, dim=1):
            h, c = self.l1(t, (h, c))
            h2, c2 = self.l2(h, (h2, c2))
            o = self.linear(h2)
            outs += [o]
        for _i in range(future):
            h, c = self.l1(o, (h, c))
            h2, c2 = self.l2(h, (h2, c2))
            o = self.linear(h2)
            outs += [o]
        return torch.cat(outs, dim=1)


class Static(nn.Module):
    """one GRU, a series id on every step, values"""

    def __init__(self, order=0):
        super().__init__()
        self.e = nn.Embedding(9, 3)
        self.rnn = nn.GRU(4, 5, batch_first=True)
        self.fc = nn.Linear(5, 2)
        self.order = order

    def forward(self, v, i):
        e = self.e(i).unsqueeze(1).expand(-1, v.size(1), -1)
        return self.fc(self.rnn(torch.cat([v[..., None], e] if self.order else [e, v[..., None]], -1))[0].mean(1))


class Described(nn.Module):
    """A series of vectors, and ids that start the network, stand beside every step or are read behind it."""

    def __init__(self, where):
        super().__init__()
        self.e, self.mixed = nn.Embedding(30, 3), nn.Conv1d(3, 3, 3, padding=1)
        self.rnn, self.fc, self.where = nn.LSTM(3, 3, batch_first=True), nn.Linear(3, 2), where

    def forward(self, x, i):
        e = self.e(i)
        start = e.unsqueeze(0) if self.where == "start" else x.new_zeros(1, len(x), 3)
        if self.where == "every step":
            x = x + e.unsqueeze(1)
        elif self.where == "mixed":
            x = x + self.mixed(e.transpose(1, 2)).transpose(1, 2)
        last = self.rnn(x, (start, start))[0][:, -1]
        return self.fc(last + e if self.where == "behind" else last)


class DeepState(nn.Module):
    """quantile head, static and time features, positional embedding of hour"""

    def __init__(self):
        super().__init__()
        self.hour = nn.Embedding(24, 3)
        self.rnn = nn.GRU(5, 6, 2, batch_first=True)
        self.q = nn.ModuleList([nn.Linear(6, 1) for _ in range(3)])

    def forward(self, values, hours):
        x = torch.cat([torch.log1p(values.abs()), self.hour(hours)], -1)
        o = self.rnn(x)[0]
        return torch.stack([q(o) for q in self.q], -1).squeeze(2)


VALUES, COVARIATES, SERIES = numbers(2, 3), numbers(2, 6, 2), torch.tensor([1, 3])
HOURS = torch.tensor([[3, 4, 5, 6, 7], [13, 14, 15, 16, 17]])
MODELS = {
    "DeepAR": Model(
        DeepAR, (VALUES, COVARIATES, SERIES), lambda out: out[:, 2], alone=one_of(VALUES, COVARIATES, SERIES)
    ),
    "DeepAR, one path": Model(
        lambda: DeepAR(True), (VALUES[:1], COVARIATES[:1], SERIES[:1]), lambda out: out[:, 2], options={"seed": 3}
    ),
    "teacher forcing": Model(
        lambda: Seq2Seq(0.5), (numbers(1, 4, 2), numbers(1, 8, 1), 8), lambda out: out[:, 7], options={"seed": 0}
    ),
    "LSTNet": Model(LSTNet, (numbers(2, 12, 3),), 1, alone=one_of(numbers(2, 12, 3))),
    "DA-RNN": Model(DARNNCells, (numbers(2, 3, 3), VALUES), lambda out: out, alone=one_of(numbers(2, 3, 3), VALUES)),
    "error of an autoencoder": Model(
        LSTMAE, (numbers(2, 4, 3),), lambda out: out.pow(2).sum((1, 2)), alone=one_of(numbers(2, 4, 3))
    ),
    "two cells that go on": Model(SineCells, (VALUES, 2), -1, alone=lambda b: (VALUES[b : b + 1], 2)),
    "hours": Model(
        DeepState, (numbers(2, 5, 2), HOURS), lambda out: out[:, -1, 2], (1,), alone=one_of(numbers(2, 5, 2), HOURS)
    ),
    "one number of a series": Model(Static, (VALUES, SERIES), 1, alone=one_of(VALUES, SERIES)),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_account_is_right(name):
    judge_account(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_the_explanation_is_right(name):
    judge_explanation(MODELS[name])


@pytest.mark.parametrize("name", ["DeepAR, one path", "teacher forcing"])
@pytest.mark.parametrize("call", [unrolled.account, unrolled.explain])
def test_what_is_drawn_is_refused_by_name_without_a_seed(name, call):
    case = MODELS[name]
    with pytest.raises(unrolled.UsageError, match=r"rand|normal draws random numbers.*or pass seed=0"):
        call(case.built(), *case.args, target=case.target)


@pytest.mark.parametrize("name", ["DeepAR", "one number of a series"])
def test_a_number_that_describes_the_series_names_no_step(name):
    case = MODELS[name]
    found = unrolled.explain(case.built(), *case.alone(0), target=case.target)
    assert found.tokens == tuple(f"x{t}" for t in range(len(found)))
    assert not [note for note in found.notes if "which token" in note]


@pytest.mark.parametrize("where", ["start", "every step", "behind", "mixed"])
def test_only_ids_that_steps_mix_are_missed_where_a_model_reads_numbers(where):
    described = SERIES if where != "mixed" else ids(2, 4)
    found = unrolled.explain_batch(Described(where).double(), numbers(2, 4, 3), described, target=1)[0]
    assert found.tokens == ("x0", "x1", "x2", "x3")
    assert len([note for note in found.notes if "which token" in note]) == (where == "mixed")
