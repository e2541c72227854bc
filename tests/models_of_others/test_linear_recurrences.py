"""Recurrences whose state is a matrix or a gated mean, in a loop, as masked attention and as a parallel scan."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from outside_judge import Model, ids, judge_account, judge_explanation, one_of

V, D = 30, 6


class Block(nn.Module):
    """x + mix(norm(x)), and a head on the last position."""

    def __init__(self):
        super().__init__()
        self.emb, self.norm, self.head = nn.Embedding(V, D), nn.LayerNorm(D), nn.Linear(D, 3)
        self.build()

    def project(self, *names):
        for name in names:
            setattr(self, name, nn.Linear(D, D, bias=False))

    def forward(self, tokens):
        x = self.emb(tokens)
        return self.head((x + self.mix(self.norm(x)))[:, -1])


class DeltaNet(Block):
    def build(self):
        self.project("q", "k", "v")
        self.beta = nn.Linear(D, 1)

    def mix(self, x):
        q, k, v = self.q(x), F.normalize(F.silu(self.k(x)), dim=-1), self.v(x)
        beta = torch.sigmoid(self.beta(x))
        S, out = x.new_zeros(len(x), D, D), []
        for t in range(x.shape[1]):
            error = v[:, t] - torch.einsum("bij,bj->bi", S, k[:, t])
            S = S + torch.einsum("bi,bj->bij", beta[:, t] * error, k[:, t])
            out.append(torch.einsum("bij,bj->bi", S, q[:, t]))
        return torch.stack(out, 1)


class GatedDeltaNet(Block):
    """The gated delta rule, as a method of one step."""

    def build(self):
        self.project("q", "k", "v")
        self.beta, self.a, self.A_log = nn.Linear(D, 1), nn.Linear(D, 1), nn.Parameter(torch.rand(1))

    def step(self, x, S):
        q, k, v = F.normalize(self.q(x), dim=-1), F.normalize(self.k(x), dim=-1)[..., None], self.v(x)[..., None]
        beta, decay = torch.sigmoid(self.beta(x)), torch.exp(-self.A_log.exp() * F.softplus(self.a(x)))
        S = S * decay[..., None]
        S = S - beta[..., None] * (S @ k @ k.mT) + beta[..., None] * (v @ k.mT)
        return (S @ q[..., None])[..., 0], S

    def mix(self, x):
        S, out = x.new_zeros(len(x), D, D), []
        for t in range(x.shape[1]):
            y, S = self.step(x[:, t], S)
            out.append(y)
        return torch.stack(out, 1)


class RWKV7(Block):
    """A generalised delta rule behind token shifts, with a group norm."""

    def build(self):
        self.project("r", "w", "k", "v", "a", "g", "out")
        self.mu, self.norm_out = nn.Parameter(torch.rand(6, D)), nn.GroupNorm(2, D)

    def mix(self, x):
        before = F.pad(x, (0, 0, 1, -1))
        r, w, k, v, a, g = (
            getattr(self, name)(torch.lerp(x, before, mu)) for name, mu in zip("rwkvag", self.mu, strict=True)
        )
        w, a, kk = torch.exp(-math.exp(-0.5) * w.sigmoid()), a.sigmoid(), F.normalize(k, dim=-1)
        S, out = x.new_zeros(len(x), D, D), []
        for t in range(x.shape[1]):
            removed = (S @ kk[:, t, :, None]) @ (kk[:, t] * a[:, t])[:, None, :]
            S = S * w[:, t, None, :] - removed + v[:, t, :, None] @ k[:, t, None, :]
            out.append((S @ r[:, t, :, None])[..., 0])
        y = torch.stack(out, 1)
        return self.out(self.norm_out(y.flatten(0, 1)).view_as(y) * g.sigmoid())


class TestTimeTraining(Block):
    """The state is a weight that every step trains by one gradient of ‖W k − v‖²."""

    __test__ = False

    def build(self):
        self.project("q", "k", "v")
        self.W = nn.Parameter(0.3 * torch.randn(D, D))

    def mix(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        W, out = self.W.expand(len(x), D, D), []
        for t in range(x.shape[1]):
            W = W - 0.1 * 2 * (W @ k[:, t, :, None] - v[:, t, :, None]) @ k[:, t, None]
            out.append((W @ q[:, t, :, None])[..., 0])
        return torch.stack(out, 1)


class RGLRU(Block):
    """The recurrence of Griffin behind a causal convolution."""

    def build(self):
        self.decay, self.r, self.i = nn.Parameter(torch.rand(D)), nn.Linear(D, D), nn.Linear(D, D)
        self.conv = nn.Conv1d(D, D, 4, groups=D, padding=3)

    def mix(self, x):
        x = self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2)
        log_a = -8 * self.r(x).sigmoid() * F.softplus(self.decay)
        a, u = log_a.exp(), torch.sqrt(1 - torch.exp(2 * log_a)) * self.i(x).sigmoid() * x
        h, out = x.new_zeros(len(x), D), []
        for t in range(x.shape[1]):
            h = a[:, t] * h + u[:, t]
            out.append(h)
        return torch.stack(out, 1)


class HGRN2(Block):
    def build(self):
        self.f, self.q, self.i = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D)

    def mix(self, x):
        f, q, i = 0.1 + 0.9 * self.f(x).sigmoid(), self.q(x), F.silu(self.i(x))
        S, out = x.new_zeros(len(x), D, D), []
        for ft, qt, it in zip(f.unbind(1), q.unbind(1), i.unbind(1), strict=True):
            S = ft[..., None] * S + (1 - ft)[..., None] * it[:, None]
            out.append(torch.einsum("bk,bkv->bv", qt, S))
        return torch.stack(out, 1)


class GatedLinearAttention(Block):
    """The parallel form: decays are differences of a cumulative sum of logarithms."""

    def build(self):
        self.project("q", "k", "v")
        self.g = nn.Linear(D, D)

    def mix(self, x):
        decay = (F.logsigmoid(self.g(x)) / 16).cumsum(1)
        scores = torch.einsum("btd,bsd->bts", self.q(x) * decay.exp(), self.k(x) * (-decay).exp())
        return scores.tril() @ self.v(x)


class RetNet(Block):
    def build(self):
        self.project("q", "k", "v")
        self.norm_out = nn.GroupNorm(2, D)

    def mix(self, x):
        at = torch.arange(x.shape[1])
        apart = at[:, None] - at
        decay = torch.where(apart >= 0, 0.9 ** apart.clamp(min=0).to(x), 0.0)
        y = (self.q(x) @ self.k(x).mT * decay) @ self.v(x)
        return self.norm_out(y.flatten(0, 1)).view_as(y)


class Mamba(Block):
    """A selective scan behind a convolution, its step as a method."""

    def build(self):
        self.inner, self.conv, self.out = nn.Linear(D, 2 * D), nn.Conv1d(D, D, 3, padding=2, groups=D), nn.Linear(D, D)
        self.select, self.dt, self.D = nn.Linear(D, 1 + 2 * 4), nn.Linear(1, D), nn.Parameter(torch.ones(D))
        self.A_log = nn.Parameter(torch.arange(1, 5).float().log().repeat(D, 1))

    def step(self, x, h):
        dt, B, C = self.select(x).split([1, 4, 4], -1)
        dt = F.softplus(self.dt(dt))[..., None]
        h = torch.exp(-dt * self.A_log.exp()) * h + dt * B[:, None] * x[..., None]
        return (h * C[:, None]).sum(-1) + self.D * x, h

    def mix(self, x):
        x, z = self.inner(x).chunk(2, -1)
        x, h, out = F.silu(self.conv(x.mT)[..., : x.shape[1]].mT), x.new_zeros(len(x), D, 4), []
        for t in range(x.shape[1]):
            y, h = self.step(x[:, t], h)
            out.append(y)
        return self.out(torch.stack(out, 1) * F.silu(z))


class Mamba2(Block):
    """State space duality: the quadratic form, with two heads."""

    def build(self):
        self.dt, self.A_log = nn.Linear(D, 2), nn.Parameter(torch.rand(2))
        self.B, self.C, self.D = nn.Linear(D, 4), nn.Linear(D, 4), nn.Parameter(torch.ones(2))

    def mix(self, x):
        b, T, _ = x.shape
        heads, dt = x.view(b, T, 2, D // 2), F.softplus(self.dt(x))
        sums = (-self.A_log.exp() * dt).cumsum(1).permute(0, 2, 1)
        later = ~torch.ones(T, T, dtype=torch.bool).tril()
        L = (sums[..., :, None] - sums[..., None, :]).masked_fill(later, -torch.inf).exp()
        y = torch.einsum("btn,bsn,bhts,bshp->bthp", self.C(x), self.B(x), L, heads * dt[..., None])
        return (y + heads * self.D[:, None]).flatten(2)


class ParallelScan(Block):
    """h_t = a_t h_{t-1} + b_t by doubling."""

    def build(self):
        self.a, self.b = nn.Linear(D, D), nn.Linear(D, D)

    def mix(self, x):
        a, b, apart = self.a(x).sigmoid(), self.b(x), 1
        while apart < x.shape[1]:
            b = a * F.pad(b, (0, 0, apart, 0))[:, : x.shape[1]] + b
            a = a * F.pad(a, (0, 0, apart, 0), value=1.0)[:, : x.shape[1]]
            apart *= 2
        return b


class LinearRecurrentUnit(Block):
    """A diagonal of complex numbers inside the unit circle."""

    def build(self):
        self.nu, self.theta = nn.Parameter(torch.rand(D)), nn.Parameter(torch.rand(D))
        self.B, self.C = nn.Parameter(0.3 * torch.randn(D, D, 2)), nn.Parameter(0.3 * torch.randn(D, D, 2))
        self.D = nn.Parameter(torch.randn(D))

    def mix(self, x):
        turn = torch.exp(torch.complex(-self.nu.exp(), self.theta.exp()))
        u = x.to(turn.dtype) @ torch.view_as_complex(self.B).T
        h, out = torch.zeros_like(u[:, 0]), []
        for t in range(x.shape[1]):
            h = turn * h + u[:, t]
            out.append((h @ torch.view_as_complex(self.C).T).real)
        return torch.stack(out, 1) + self.D * x


TEXT = ids(2, 6)
MODELS = {kind.__name__: Model(kind, (TEXT,), 1, (0,), alone=one_of(TEXT)) for kind in Block.__subclasses__()}


@pytest.mark.parametrize("name", MODELS)
def test_the_account_is_right(name):
    judge_account(MODELS[name])


@pytest.mark.parametrize("name", ["GatedDeltaNet", "Mamba"])
def test_a_step_that_is_a_method_has_n_grams(name):
    judge_explanation(MODELS[name])
