# ruff: noqa: E741  # the models are written as users write them
"""Policies, world models, memories, pointers, sessions and graphs."""

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


class Pointer(nn.Module):
    def __init__(self, log=True):
        super().__init__()
        self.log = log
        self.emb = nn.Linear(2, 5, bias=False)
        self.enc = nn.LSTM(5, 6, batch_first=True)
        self.dec = nn.LSTMCell(5, 6)
        self.d0 = nn.Parameter(torch.randn(5))
        self.W1 = nn.Linear(6, 6, bias=False)
        self.W2 = nn.Linear(6, 6, bias=False)
        self.v = nn.Linear(6, 1, bias=False)

    def forward(self, x, fill=float("-inf")):
        e = self.emb(x)
        o, (h, c) = self.enc(e)
        h, c = (h[0], c[0])
        inp = self.d0.expand(len(x), -1)
        mask = torch.zeros(x.shape[:2], dtype=torch.bool)
        outs = []
        idx = []
        for _t in range(x.size(1)):
            h, c = self.dec(inp, (h, c))
            s = self.v(torch.tanh(self.W1(o) + self.W2(h).unsqueeze(1))).squeeze(2)
            s = s.masked_fill(mask, fill)
            p = F.log_softmax(s, 1) if self.log else s
            outs.append(p)
            i = p.argmax(1)
            idx.append(i)
            mask = mask.scatter(1, i[:, None], True)
            inp = e[torch.arange(len(x)), i]
        return (torch.stack(outs, 1), torch.stack(idx, 1))


class NTM(nn.Module):
    def __init__(self, N=5, M=4):
        super().__init__()
        self.N, self.M = (N, M)
        self.ctrl = nn.LSTMCell(3 + M, 6)
        self.read = nn.Linear(6, M + 2)
        self.write = nn.Linear(6, 3 * M + 2)
        self.out = nn.Linear(6 + M, 3)
        self.register_buffer("bias", torch.randn(N, M) * 0.1)
        self.h0 = nn.Parameter(torch.randn(1, 6) * 0.1)
        self.c0 = nn.Parameter(torch.randn(1, 6) * 0.1)

    def addr(self, k, b, mem):
        return F.softmax(F.softplus(b) * F.cosine_similarity(mem + 1e-16, k.unsqueeze(1) + 1e-16, dim=-1), 1)

    def forward(self, x):
        b = x.size(0)
        mem = self.bias.repeat(b, 1, 1)
        h, c = (self.h0.expand(b, -1), self.c0.expand(b, -1))
        r = torch.zeros(b, self.M).to(x)
        for t in range(x.size(1)):
            h, c = self.ctrl(torch.cat([x[:, t], r], 1), (h, c))
            o = self.write(h)
            w = self.addr(torch.tanh(o[:, : self.M]), o[:, -1:], mem)
            e = torch.sigmoid(o[:, self.M : 2 * self.M])
            a = torch.tanh(o[:, 2 * self.M : 3 * self.M])
            mem = mem * (1 - torch.matmul(w.unsqueeze(-1), e.unsqueeze(1))) + torch.matmul(
                w.unsqueeze(-1), a.unsqueeze(1)
            )
            q = self.read(h)
            r = torch.matmul(self.addr(torch.tanh(q[:, : self.M]), q[:, -1:], mem).unsqueeze(1), mem).squeeze(1)
        return torch.sigmoid(self.out(torch.cat([h, r], 1)))


class TreeLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 4)
        self.iou = nn.Linear(4, 15)
        self.ui = nn.Linear(5, 15, bias=False)
        self.wf = nn.Linear(4, 5)
        self.uf = nn.Linear(5, 5, bias=False)
        self.out = nn.Linear(5, 3)

    def node(self, x, ch, cc):
        hs = ch.sum(0, keepdim=True)
        i, o, u = (self.iou(x) + self.ui(hs)).chunk(3, 1)
        i, o, u = (torch.sigmoid(i), torch.sigmoid(o), torch.tanh(u))
        f = torch.sigmoid(self.uf(ch) + self.wf(x).repeat(len(ch), 1))
        c = i * u + (f * cc).sum(0, keepdim=True)
        return (o * torch.tanh(c), c)

    def rec(self, tree, x):
        k, kids = tree
        st = [self.rec(t, x) for t in kids]
        z = torch.zeros(1, 5).to(x)
        ch, cc = (torch.cat([s[j] for s in st]) for j in (0, 1)) if st else (z, z)
        return self.node(x[k : k + 1], ch, cc)

    def forward(self, ids, tree):
        return self.out(self.rec(tree, self.e(ids))[0])


class GGNN(nn.Module):
    def __init__(self, steps=3):
        super().__init__()
        self.e = nn.Embedding(V, 5)
        self.i, self.o = (nn.Linear(5, 5), nn.Linear(5, 5))
        self.cell = nn.GRUCell(10, 5)
        self.att = nn.Linear(10, 5)
        self.val = nn.Linear(10, 5)
        self.fc = nn.Linear(5, 3)
        self.steps = steps

    def forward(self, nodes, A):
        x = self.e(nodes)
        h = x
        b, n, d = x.shape
        for _ in range(self.steps):
            a = torch.cat([A @ self.i(h), A.transpose(1, 2) @ self.o(h)], -1)
            h = self.cell(a.view(b * n, -1), h.reshape(b * n, d)).view(b, n, d)
        j = torch.cat([h, x], -1)
        return self.fc(torch.tanh((torch.sigmoid(self.att(j)) * torch.tanh(self.val(j))).sum(1)))


class Set2Set(nn.Module):
    """MPNN: edge network, GRU update, set2set readout by an LSTM"""

    def __init__(self, steps=3):
        super().__init__()
        self.lin0 = nn.Linear(3, 5)
        self.edge = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 25))
        self.gru = nn.GRU(5, 5)
        self.lstm = nn.LSTM(10, 5, 1)
        self.l1 = nn.Linear(10, 5)
        self.l2 = nn.Linear(5, 1)
        self.steps = steps

    def forward(self, x, ei, ea, batch):
        out = F.relu(self.lin0(x))
        h = out.unsqueeze(0)
        W = self.edge(ea).view(-1, 5, 5)
        for _ in range(2):
            msg = torch.bmm(out[ei[0]].unsqueeze(1), W).squeeze(1)
            agg = torch.zeros_like(out).index_add(0, ei[1], msg)
            m = F.relu(agg)
            out, h = self.gru(m.unsqueeze(0), h)
            out = out.squeeze(0)
        B = int(batch.max()) + 1
        st = (x.new_zeros(1, B, 5), x.new_zeros(1, B, 5))
        q = x.new_zeros(B, 10)
        for _ in range(self.steps):
            y, st = self.lstm(q.unsqueeze(0), st)
            y = y.view(B, 5)
            e = (out * y[batch]).sum(-1, keepdim=True)
            mx = torch.full((B, 1), -1000000000.0).to(x).scatter_reduce(0, batch[:, None], e, "amax")
            e = torch.exp(e - mx[batch])
            s = torch.zeros(B, 1).to(x).index_add(0, batch, e)
            a = e / (s[batch] + 1e-16)
            r = torch.zeros(B, 5).to(x).index_add(0, batch, a * out)
            q = torch.cat([y, r], -1)
        return self.l2(F.relu(self.l1(q))).view(-1)


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
EDGES = torch.tensor(
    [[[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]], [[0, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]]]
).double()
ENDS = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
TEXT = ids(2, 4)
MODELS = {
    "world model": Model(MDNRNN, (numbers(4, 1, 2), numbers(4, 1, 2)), lambda out: out[1][-1, :, 1, 0]),
    "A3C": Model(A3C, ((numbers(1, 1, 8, 8), (STATE, STATE)),), lambda out: out[1][:, 2]),
    "episode with resets": Model(
        Rollout, (numbers(5, 4), STATE, torch.tensor([1, 1, 0, 1, 1.0]).double()[:, None]), lambda out: out[0][-1:, 1]
    ),
    "session": Model(GRU4Rec, (TEXT,), lambda out: out[0][:, 7], (0,), alone=one_of(TEXT)),
    "pointers": Model(
        Pointer, (numbers(2, 4, 2),), lambda out: out[0][:, 2].max(1).values, alone=one_of(numbers(2, 4, 2))
    ),
    "memory": Model(NTM, (numbers(2, 3, 3),), 1, alone=one_of(numbers(2, 3, 3))),
    "graph": Model(GGNN, (TEXT, EDGES), 1, (0,), alone=one_of(TEXT, EDGES)),
    "molecule": Model(Set2Set, (numbers(3, 3), ENDS, numbers(4, 2), torch.tensor([0, 0, 0])), lambda out: out),
    "frames": Model(VideoLSTM, (numbers(2, 3, 1, 5, 5),), 2, alone=one_of(numbers(2, 3, 1, 5, 5))),
    "tree": Model(TreeLSTM, (ids(1, 5)[0], (0, ((1, ()), (2, ((3, ()), (4, ())))))), 1, (0,)),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_account_is_right(name):
    judge_account(MODELS[name])


@pytest.mark.parametrize("name", [name for name in MODELS if name != "tree"])
def test_the_explanation_is_right(name):
    judge_explanation(MODELS[name])


def test_a_tree_has_an_account_and_no_n_grams():
    case = MODELS["tree"]
    with pytest.raises(unrolled.UsageError, match=r"unrolled.account"):
        unrolled.explain(case.built(), *case.args, target=1)


def test_a_latent_draw_is_refused_by_name_and_opened_with_a_seed():
    case = Model(Hopf, (numbers(1, 4, 3),), 1, options={"seed": 0})
    judge_account(case)
    judge_explanation(case)
    with pytest.raises(unrolled.UsageError, match="randn_like draws random numbers"):
        unrolled.explain(case.built(), *case.args, target=1)
