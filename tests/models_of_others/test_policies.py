# ruff: noqa: E741  # the models are written as users write them
"""Policies, world models, sessions and video."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence as pack
from torch.nn.utils.rnn import pad_packed_sequence as unpack

import unrolled
from outside_judge import Model, ids, judge_account, judge_explanation, numbers, one_of

V = 30


class MDNRNN(nn.Module):
    def __init__(self, g=3, l=2):
        super().__init__()
        self.g, self.l = (g, l)
        self.rnn = nn.LSTM(l + 2, 6)
        self.gmm = nn.Linear(6, (2 * l + 1) * g + 2)

    def forward(self, actions, latents):
        T, b = actions.shape[:2]
        o, _ = self.rnn(torch.cat([actions, latents], -1))
        o = self.gmm(o)
        s = self.g * self.l
        mu = o[:, :, :s].view(T, b, self.g, self.l)
        sig = torch.exp(o[:, :, s : 2 * s].view(T, b, self.g, self.l))
        pi = F.log_softmax(o[:, :, 2 * s : 2 * s + self.g], -1)
        return (mu, sig, pi, o[:, :, -2], o[:, :, -1])


class A3C(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.ModuleList([nn.Conv2d(1 if k == 0 else 3, 3, 3, stride=2, padding=1) for k in range(3)])
        self.lstm = nn.LSTMCell(3, 5)
        self.critic = nn.Linear(5, 1)
        self.actor = nn.Linear(5, 4)

    def forward(self, inputs):
        x, (hx, cx) = inputs
        for c in self.c:
            x = F.elu(c(x))
        x = x.view(-1, 3)
        hx, cx = self.lstm(x, (hx, cx))
        x = hx
        return (self.critic(x), self.actor(x), (hx, cx))


class Rollout(nn.Module):
    """policy over an episode with resets by done masks"""

    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(4, 5), nn.Tanh())
        self.gru = nn.GRU(5, 5)
        self.actor = nn.Linear(5, 3)

    def forward(self, x, hxs, masks):
        x = self.base(x)
        N = hxs.size(0)
        T = x.size(0) // N
        x = x.view(T, N, -1)
        masks = masks.view(T, N)
        has = (masks[1:] == 0.0).any(dim=-1).nonzero().squeeze().cpu()
        has = [(has + 1).item()] if has.dim() == 0 else (has + 1).numpy().tolist()
        has = [0, *has, T]
        hxs = hxs.unsqueeze(0)
        outs = []
        for i in range(len(has) - 1):
            s, e = (has[i], has[i + 1])
            r, hxs = self.gru(x[s:e], hxs * masks[s].view(1, -1, 1))
            outs.append(r)
        x = torch.cat(outs, 0).view(T * N, -1)
        return (self.actor(x), hxs.squeeze(0))


class GRU4Rec(nn.Module):
    def __init__(self, act="tanh"):
        super().__init__()
        self.e = nn.Embedding(V, 5)
        self.gru = nn.GRU(5, 6, 2, dropout=0.1)
        self.h2o = nn.Linear(6, V)
        self.act = nn.Tanh()

    def forward(self, ids, hidden=None):
        e = self.e(ids).unsqueeze(0) if ids.dim() == 1 else self.e(ids.t())
        o, h = self.gru(e, hidden)
        o = o[-1].view(-1, o.size(-1))
        return (self.act(self.h2o(o)), h)


class NARM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 5, padding_idx=0)
        self.gru = nn.GRU(5, 6)
        self.a1 = nn.Linear(6, 6, bias=False)
        self.a2 = nn.Linear(6, 6, bias=False)
        self.v = nn.Linear(6, 1, bias=False)
        self.ct = nn.Dropout(0.5)
        self.b = nn.Linear(5, 12, bias=False)

    def forward(self, seq, lengths):
        x = self.e(seq)
        p = pack(x, lengths)
        o, h = self.gru(p, torch.zeros(1, seq.size(1), 6, dtype=x.dtype))
        o, _ = unpack(o)
        ht = h[-1]
        o = o.permute(1, 0, 2)
        q1 = self.a1(o.contiguous().view(-1, 6)).view(o.size())
        q2 = self.a2(ht)
        mask = torch.where(seq.permute(1, 0) > 0, torch.tensor([1.0]), torch.tensor([0.0])).to(x)
        q2m = mask.unsqueeze(2).expand_as(q1) * q2.unsqueeze(1).expand_as(q1)
        alpha = self.v(torch.sigmoid(q1 + q2m).view(-1, 6)).view(mask.size())
        cl = torch.sum(alpha.unsqueeze(2).expand_as(o) * o, 1)
        ct = self.ct(torch.cat([cl, ht], 1))
        items = self.e(torch.arange(V))
        return torch.matmul(ct, self.b(items).permute(1, 0))


class VideoLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 3, 3, padding=1),
            nn.BatchNorm2d(3),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(3, 5),
        )
        self.lstm = nn.LSTM(5, 6, 3, batch_first=True)
        self.fc1 = nn.Linear(6, 5)
        self.fc2 = nn.Linear(5, 4)

    def forward(self, v):
        hidden = None
        for t in range(v.size(1)):
            with torch.no_grad():
                x = self.cnn(v[:, t])
            out, hidden = self.lstm(x.unsqueeze(0).transpose(0, 1), hidden)
        x = self.fc1(out[:, -1])
        return self.fc2(F.relu(x))


class Hopf(nn.Module):
    """world model controller: z sampled by reparametrisation"""

    def __init__(self):
        super().__init__()
        self.enc = nn.GRU(3, 5, batch_first=True)
        self.mu, self.lv = (nn.Linear(5, 2), nn.Linear(5, 2))
        self.fc = nn.Linear(2, 3)

    def forward(self, x):
        h = self.enc(x)[1][-1]
        mu, lv = (self.mu(h), self.lv(h))
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * lv)
        return self.fc(z)


STATE = numbers(1, 5)
TEXT = ids(2, 4)
MODELS = {
    "world model": Model(MDNRNN, (numbers(4, 1, 2), numbers(4, 1, 2)), lambda out: out[1][-1, :, 1, 0]),
    "A3C": Model(A3C, ((numbers(1, 1, 8, 8), (STATE, STATE)),), lambda out: out[1][:, 2]),
    "episode with resets": Model(
        Rollout, (numbers(5, 4), STATE, torch.tensor([1, 1, 0, 1, 1.0]).double()[:, None]), lambda out: out[0][-1:, 1]
    ),
    "session": Model(GRU4Rec, (TEXT,), lambda out: out[0][:, 7], (0,), alone=one_of(TEXT)),
    "frames": Model(VideoLSTM, (numbers(2, 3, 1, 5, 5),), 2, alone=one_of(numbers(2, 3, 1, 5, 5))),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_account_is_right(name):
    judge_account(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_the_explanation_is_right(name):
    judge_explanation(MODELS[name])


def test_a_latent_draw_is_refused_by_name_and_opened_with_a_seed():
    case = Model(Hopf, (numbers(1, 4, 3),), 1, options={"seed": 0})
    judge_account(case)
    judge_explanation(case)
    with pytest.raises(unrolled.UsageError, match="randn_like draws random numbers"):
        unrolled.explain(case.built(), *case.args, target=1)
