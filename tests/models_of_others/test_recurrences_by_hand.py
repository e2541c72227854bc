"""Recurrences as users write them: quasi-recurrent and simple units, minGRU, Mamba, RWKV, IndRNN, batch norm."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from outside_judge import Model, ids, judge_account, one_of

V = 30
TEXT = ids(2, 5)


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


BY_HAND = [QRNN, SRU, lambda: MinGRU(False), MinGRU, Mamba, RWKV, IndRNN, BNLSTM]


@pytest.mark.parametrize("make", BY_HAND)
def test_a_recurrence_by_hand_has_an_account(make):
    judge_account(Model(make, (TEXT,), 1, (0,), alone=one_of(TEXT)))
