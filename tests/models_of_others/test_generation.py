# ruff: noqa: E741  # the models are written as users write them
"""Language models and decoders: weight drop, latent states, captions, speech frames, copies, free running."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence as pack
from torch.nn.utils.rnn import pad_packed_sequence as unpack

import unrolled
from outside_judge import Model, ids, judge_account, judge_explanation, numbers, one_of

V = 30


class VAEText(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 5)
        self.enc = nn.GRU(5, 6, batch_first=True, bidirectional=True)
        self.mu = nn.Linear(12, 3)
        self.lv = nn.Linear(12, 3)
        self.l2h = nn.Linear(3, 6)
        self.dec = nn.GRU(5, 6, batch_first=True)
        self.out = nn.Linear(6, V)
        self.wd = nn.Dropout(0.3)

    def forward(self, ids, lengths):
        s, idx = torch.sort(lengths, descending=True)
        x = self.e(ids[idx])
        _, h = self.enc(pack(x, s.data.tolist(), batch_first=True))
        h = h.permute(1, 0, 2).reshape(len(ids), -1)
        mu, lv = (self.mu(h), self.lv(h))
        z = torch.randn([len(ids), 3]).to(mu) * torch.exp(0.5 * lv) + mu if self.training else mu
        o, _ = self.dec(pack(self.wd(x), s.data.tolist(), batch_first=True), self.l2h(z).unsqueeze(0))
        o = unpack(o, batch_first=True)[0].contiguous()
        _, r = torch.sort(idx)
        o = o[r]
        b, t, d = o.size()
        return (F.log_softmax(self.out(o.view(-1, d)), -1).view(b, t, V), mu, lv, z)


class Captioner(nn.Module):
    def __init__(self, feed=True):
        super().__init__()
        self.cnn = nn.Conv2d(1, 4, 3, 2, 1)
        self.ea, self.da, self.fa = (nn.Linear(4, 5), nn.Linear(6, 5), nn.Linear(5, 1))
        self.emb = nn.Embedding(V, 5)
        self.cell = nn.LSTMCell(9, 6)
        self.ih, self.ic = (nn.Linear(4, 6), nn.Linear(4, 6))
        self.fb = nn.Linear(6, 4)
        self.fc = nn.Linear(6, V)
        self.dropout = nn.Dropout(0.5)

    def forward(self, img, caps, lens):
        f = F.relu(self.cnn(img)).permute(0, 2, 3, 1)
        b = len(img)
        f = f.view(b, -1, 4)
        lens, si = lens.squeeze(1).sort(0, descending=True)
        f = f[si]
        caps = caps[si]
        e = self.emb(caps)
        m = f.mean(1)
        h, c = (self.ih(m), self.ic(m))
        dl = (lens - 1).tolist()
        P = torch.zeros(b, max(dl), V).to(f)
        AL = torch.zeros(b, max(dl), f.size(1)).to(f)
        for t in range(max(dl)):
            n = sum(l > t for l in dl)
            a = self.fa(F.relu(self.ea(f[:n]) + self.da(h[:n]).unsqueeze(1))).squeeze(2)
            al = F.softmax(a, 1)
            aw = (f[:n] * al.unsqueeze(2)).sum(1)
            aw = torch.sigmoid(self.fb(h[:n])) * aw
            h, c = self.cell(torch.cat([e[:n, t], aw], 1), (h[:n], c[:n]))
            P[:n, t] = self.fc(self.dropout(h))
            AL[:n, t] = al
        return (P, caps, dl, AL, si)


class Taco(nn.Module):
    """Tacotron2 decoder part: prenet with dropout always on, attention rnn, location attention, decoder rnn"""

    def __init__(self, on=True):
        super().__init__()
        self.on = on
        self.emb = nn.Embedding(V, 5)
        self.enc = nn.LSTM(5, 3, 1, batch_first=True, bidirectional=True)
        self.pre = nn.ModuleList([nn.Linear(2, 5, bias=False), nn.Linear(5, 5, bias=False)])
        self.arnn = nn.LSTMCell(11, 6)
        self.q = nn.Linear(6, 4, bias=False)
        self.mem = nn.Linear(6, 4, bias=False)
        self.v = nn.Linear(4, 1, bias=False)
        self.lc = nn.Conv1d(2, 2, 3, padding=1, bias=False)
        self.ld = nn.Linear(2, 4, bias=False)
        self.drnn = nn.LSTMCell(12, 6, True)
        self.proj = nn.Linear(12, 2)
        self.gate = nn.Linear(12, 1)

    def prenet(self, x):
        for l in self.pre:
            x = F.dropout(F.relu(l(x)), p=0.5, training=self.on)
        return x

    def forward(self, text, mels):
        m, _ = self.enc(self.emb(text))
        pm = self.mem(m)
        b, T, _ = m.shape
        z = lambda n: m.new_zeros(b, n)
        h, c, dh, dc, w, wc, ctx = (z(6), z(6), z(6), z(6), z(T), z(T), z(6))
        x = torch.cat([mels.new_zeros(b, 1, 2), mels], 1)
        x = self.prenet(x)
        outs = []
        gates = []
        for t in range(mels.size(1)):
            h, c = self.arnn(torch.cat([x[:, t], ctx], -1), (h, c))
            h = F.dropout(h, 0.1, self.training)
            loc = self.ld(self.lc(torch.stack([w, wc], 1)).transpose(1, 2))
            en = self.v(torch.tanh(self.q(h.unsqueeze(1)) + loc + pm)).squeeze(-1)
            w = F.softmax(en, 1)
            ctx = torch.bmm(w.unsqueeze(1), m).squeeze(1)
            wc = wc + w
            dh, dc = self.drnn(torch.cat([h, ctx], -1), (dh, dc))
            dh = F.dropout(dh, 0.1, self.training)
            o = torch.cat([dh, ctx], 1)
            outs.append(self.proj(o))
            gates.append(self.gate(o))
        return (torch.stack(outs, 1), torch.stack(gates, 1))


class Greedy(nn.Module):
    """free-running generation: arg max fed back"""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(2 * V, 4)
        self.enc = nn.GRU(4, 5, batch_first=True)
        self.dec = nn.GRU(4, 5, batch_first=True)
        self.fc = nn.Linear(5, V)

    def forward(self, ids):
        _, h = self.enc(self.e(ids))
        w = torch.ones(len(ids), 1, dtype=torch.long)
        outs = []
        for _ in range(4):
            o, h = self.dec(self.e(w), h)
            o = self.fc(o[:, 0])
            w = o.argmax(1, keepdim=True)
            outs.append(o)
        return torch.stack(outs, 1)


class Copy(nn.Module):
    """pointer-generator: p_gen * vocab dist + (1-p_gen) * attention scattered"""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 4)
        self.enc = nn.LSTM(4, 3, batch_first=True, bidirectional=True)
        self.cell = nn.LSTMCell(4, 6)
        self.v = nn.Linear(12, V)
        self.pg = nn.Linear(16, 1)
        self.rh, self.rc = (nn.Linear(6, 6), nn.Linear(6, 6))

    def forward(self, src, tgt):
        m, (h, c) = self.enc(self.e(src))
        h, c = (F.relu(self.rh(torch.cat([h[0], h[1]], 1))), F.relu(self.rc(torch.cat([c[0], c[1]], 1))))
        outs = []
        for t in range(tgt.size(1)):
            y = self.e(tgt[:, t])
            h, c = self.cell(y, (h, c))
            a = F.softmax(torch.bmm(m, h.unsqueeze(2)).squeeze(2), 1)
            ctx = torch.bmm(a.unsqueeze(1), m).squeeze(1)
            vd = F.softmax(self.v(torch.cat([h, ctx], 1)), 1)
            p = torch.sigmoid(self.pg(torch.cat([ctx, h, y], 1)))
            outs.append((p * vd).scatter_add(1, src, (1 - p) * a))
        return torch.stack(outs, 1)


@dataclass
class Output:
    logits: torch.Tensor
    hidden: tuple


class WithHidden(nn.Module):
    """(logits, hidden), learned BOS added, dataclass"""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 4)
        self.rnn = nn.GRU(4, 5, 2, batch_first=True)
        self.fc = nn.Linear(5, V)

    def forward(self, ids, hidden=None):
        bos = torch.full((len(ids), 1), 1, dtype=torch.long)
        x = torch.cat([bos, ids], 1)
        o, h = self.rnn(self.e(x), hidden)
        return Output(self.fc(o), h)


WORDS = torch.tensor([[21, 26, 8, 2, 10], [13, 19, 25, 20, 3]])
TEXT, IMAGE = ids(2, 5), numbers(2, 1, 6, 6)
CAPTION, LENGTHS = torch.tensor([[1, 5, 8, 9, 2], [1, 6, 3, 2, 0]]), torch.tensor([[5], [4]])
MODELS = {
    "latent": Model(
        VAEText,
        (torch.tensor([[8, 2, 6, 0, 0], [4, 9, 7, 3, 12]]), torch.tensor([3, 5])),
        lambda out: out[0][:, 2, 7],
        (0,),
        (3, 4, 8, 9),
        one_of(torch.tensor([[8, 2, 6, 0, 0], [4, 9, 7, 3, 12]]), torch.tensor([3, 5])),
    ),
    "captions": Model(
        Captioner,
        (IMAGE, CAPTION, LENGTHS),
        lambda out: out[0][:, 2, 7][torch.argsort(out[4])],
        alone=one_of(IMAGE, CAPTION, LENGTHS),
    ),
    "speech frames": Model(
        lambda: Taco(False),
        (ids(2, 4), numbers(2, 3, 2)),
        lambda out: out[0][:, -1, 1],
        (0,),
        alone=one_of(ids(2, 4), numbers(2, 3, 2)),
    ),
    "speech frames, dropout on": Model(
        Taco, (ids(1, 4), numbers(1, 3, 2)), lambda out: out[0][:, -1, 1], (0,), options={"seed": 0}
    ),
    "free running": Model(Greedy, (TEXT + 30,), lambda out: out[:, 3, 7], (0,), alone=one_of(TEXT + 30)),
    "copies": Model(Copy, (TEXT, ids(2, 3)), lambda out: out[:, 2, 7], (0, 1), alone=one_of(TEXT, ids(2, 3))),
    "a first token is added": Model(WithHidden, (WORDS,), lambda out: out.logits[:, 3, 7], (0,), (4, 9), one_of(WORDS)),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_account_is_right(name):
    judge_account(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_the_explanation_is_right(name):
    judge_explanation(MODELS[name])


def test_dropout_that_is_always_on_is_refused_by_name():
    case = MODELS["speech frames, dropout on"]
    for call in (unrolled.account, unrolled.explain):
        with pytest.raises(unrolled.UsageError, match=r"dropout of 0.5 draws random numbers"):
            call(case.built(), *case.args, target=case.target)


def test_a_token_that_the_model_adds_is_no_token_of_the_text():
    case = MODELS["a first token is added"]
    assert unrolled.explain(case.built(), *case.alone(0), target=case.target).tokens[0] == "1"
    assert "e.weight" in unrolled.account(case.built(), *case.alone(0), target=case.target).biases
