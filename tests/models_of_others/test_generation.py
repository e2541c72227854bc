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


class QRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 4)
        self.l = nn.Linear(8, 15)
        self.fc = nn.Linear(5, 3)

    def forward(self, ids):
        x = self.e(ids)
        prev = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)
        z, f, o = self.l(torch.cat([prev, x], -1)).chunk(3, -1)
        z, f, o = (z.tanh(), f.sigmoid(), o.sigmoid())
        c = torch.zeros_like(z[:, 0])
        hs = []
        for t in range(ids.size(1)):
            c = f[:, t] * c + (1 - f[:, t]) * z[:, t]
            hs.append(o[:, t] * c)
        return self.fc(torch.stack(hs, 1)[:, -1])


class SRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 5)
        self.w = nn.Linear(5, 15, bias=False)
        self.v = nn.Parameter(torch.randn(2, 5))
        self.b = nn.Parameter(torch.randn(2, 5))
        self.fc = nn.Linear(5, 3)

    def forward(self, ids):
        x = self.e(ids)
        u = self.w(x)
        c = torch.zeros_like(x[:, 0])
        h = None
        for t in range(ids.size(1)):
            a, f_, r_ = u[:, t].chunk(3, -1)
            f = torch.sigmoid(f_ + self.v[0] * c + self.b[0])
            r = torch.sigmoid(r_ + self.v[1] * c + self.b[1])
            c = f * c + (1 - f) * a
            h = r * c + (1 - r) * x[:, t]
        return self.fc(h)


class MinGRU(nn.Module):
    """parallel scan in log space"""

    def __init__(self, log=True):
        super().__init__()
        self.log = log
        self.e = nn.Embedding(V, 4)
        self.hg = nn.Linear(4, 10)
        self.fc = nn.Linear(5, 3)

    def forward(self, ids):
        h, g = self.hg(self.e(ids)).chunk(2, -1)
        if self.log:
            lc = -F.softplus(g)
            lz = -F.softplus(-g)
            lh = torch.where(h >= 0, (F.relu(h) + 0.5).log(), -F.softplus(-h))
            v = lz + lh
            a = F.pad(lc.cumsum(1), (0, 0, 1, 0))[:, 1:]
            out = (a + (v - a).logcumsumexp(1)).exp()
        else:
            z = g.sigmoid()
            s = torch.zeros_like(h[:, 0])
            for t in range(h.size(1)):
                s = (1 - z[:, t]) * s + z[:, t] * h[:, t]
            return self.fc(s)
        return self.fc(out[:, -1])


class Mamba(nn.Module):
    def __init__(self, d=4, n=3):
        super().__init__()
        self.n = n
        self.e = nn.Embedding(V, d)
        self.inp = nn.Linear(d, 2 * d)
        self.conv = nn.Conv1d(d, d, 3, groups=d, padding=2)
        self.xp = nn.Linear(d, 1 + 2 * n, bias=False)
        self.dt = nn.Linear(1, d)
        self.A = nn.Parameter(torch.log(torch.arange(1, n + 1).float().repeat(d, 1)))
        self.D = nn.Parameter(torch.ones(d))
        self.o = nn.Linear(d, d, bias=False)
        self.norm = nn.LayerNorm(d)
        self.fc = nn.Linear(d, 3)

    def forward(self, ids):
        r = self.e(ids)
        x, z = self.inp(self.norm(r)).chunk(2, -1)
        L = x.size(1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., :L].transpose(1, 2))
        A = -torch.exp(self.A)
        dt, B, C = self.xp(x).split([1, self.n, self.n], -1)
        dt = F.softplus(self.dt(dt))
        dA = torch.exp(torch.einsum("bld,dn->bldn", dt, A))
        dBu = torch.einsum("bld,bln,bld->bldn", dt, B, x)
        s = torch.zeros_like(dA[:, 0])
        ys = []
        for t in range(L):
            s = dA[:, t] * s + dBu[:, t]
            ys.append(torch.einsum("bdn,bn->bd", s, C[:, t]))
        y = torch.stack(ys, 1) + x * self.D
        return self.fc((r + self.o(y * F.silu(z)))[:, -1])


class RWKV(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.e = nn.Embedding(V, d)
        self.ln = nn.LayerNorm(d)
        self.mk, self.mv, self.mr = (nn.Parameter(torch.rand(d)) for _ in range(3))
        self.k, self.v, self.r, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.w = nn.Parameter(-torch.rand(d) - 0.5)
        self.u = nn.Parameter(torch.rand(d))
        self.fc = nn.Linear(d, 3)

    def forward(self, ids):
        x0 = self.e(ids)
        x = self.ln(x0)
        px = F.pad(x, (0, 0, 1, -1))
        k = self.k(x * self.mk + px * (1 - self.mk))
        v = self.v(x * self.mv + px * (1 - self.mv))
        r = torch.sigmoid(self.r(x * self.mr + px * (1 - self.mr)))
        a = b = torch.zeros_like(k[:, 0])
        p = torch.full_like(a, -1e38)
        ys = []
        for t in range(ids.size(1)):
            kk, vv = (k[:, t], v[:, t])
            ww = self.u + kk
            q = torch.maximum(p, ww)
            e1, e2 = (torch.exp(p - q), torch.exp(ww - q))
            ys.append((e1 * a + e2 * vv) / (e1 * b + e2))
            ww = p + self.w
            q = torch.maximum(ww, kk)
            e1, e2 = (torch.exp(ww - q), torch.exp(kk - q))
            a, b, p = (e1 * a + e2 * vv, e1 * b + e2, q)
        return self.fc((x0 + self.o(r * torch.stack(ys, 1)))[:, -1])


class IndRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 4)
        self.w = nn.Linear(4, 6)
        self.u = nn.Parameter(torch.rand(6))
        self.bn = nn.BatchNorm1d(6)
        self.fc = nn.Linear(6, 3)

    def forward(self, ids):
        x = self.w(self.e(ids))
        x = self.bn(x.transpose(1, 2)).transpose(1, 2)
        h = torch.zeros_like(x[:, 0])
        for t in range(ids.size(1)):
            h = F.relu(x[:, t] + self.u * h)
        return self.fc(h)


class BNLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 4)
        self.W = nn.Parameter(torch.randn(4, 20) * 0.4)
        self.U = nn.Parameter(torch.randn(5, 20) * 0.4)
        self.b = nn.Parameter(torch.zeros(20))
        self.b1 = nn.ModuleList([nn.BatchNorm1d(20) for _ in range(8)])
        self.b2 = nn.ModuleList([nn.BatchNorm1d(20) for _ in range(8)])
        self.bc = nn.ModuleList([nn.BatchNorm1d(5) for _ in range(8)])
        self.fc = nn.Linear(5, 3)

    def forward(self, ids):
        x = self.e(ids)
        h = c = x.new_zeros(len(x), 5)
        for t in range(x.size(1)):
            f, i, o, g = torch.split(
                self.b1[t](torch.mm(x[:, t], self.W))
                + self.b2[t](torch.mm(h, self.U))
                + self.b.unsqueeze(0).expand(len(x), 20),
                5,
                1,
            )
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(self.bc[t](c))
        return self.fc(h)


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
BY_HAND = [QRNN, SRU, lambda: MinGRU(False), MinGRU, Mamba, RWKV, IndRNN, BNLSTM]


@pytest.mark.parametrize("name", MODELS)
def test_the_account_is_right(name):
    judge_account(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_the_explanation_is_right(name):
    judge_explanation(MODELS[name])


@pytest.mark.parametrize("make", BY_HAND)
def test_a_recurrence_by_hand_has_an_account(make):
    judge_account(Model(make, (TEXT,), 1, (0,), alone=one_of(TEXT)))


def test_dropout_that_is_always_on_is_refused_by_name():
    case = MODELS["speech frames, dropout on"]
    for call in (unrolled.account, unrolled.explain):
        with pytest.raises(unrolled.UsageError, match=r"dropout of 0.5 draws random numbers"):
            call(case.built(), *case.args, target=case.target)


def test_a_token_that_the_model_adds_is_no_token_of_the_text():
    case = MODELS["a first token is added"]
    assert unrolled.explain(case.built(), *case.alone(0), target=case.target).tokens[0] == "1"
    assert "e.weight" in unrolled.account(case.built(), *case.alone(0), target=case.target).biases
