"""Memories, pointers, graphs and trees."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from outside_judge import Model, ids, judge_account, judge_explanation, numbers, one_of

V = 30


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


EDGES = torch.tensor(
    [[[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]], [[0, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]]]
).double()
ENDS = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
TEXT = ids(2, 4)
MODELS = {
    "pointers": Model(
        Pointer, (numbers(2, 4, 2),), lambda out: out[0][:, 2].max(1).values, alone=one_of(numbers(2, 4, 2))
    ),
    "memory": Model(NTM, (numbers(2, 3, 3),), 1, alone=one_of(numbers(2, 3, 3))),
    "graph": Model(GGNN, (TEXT, EDGES), 1, (0,), alone=one_of(TEXT, EDGES)),
    "molecule": Model(Set2Set, (numbers(3, 3), ENDS, numbers(4, 2), torch.tensor([0, 0, 0])), lambda out: out),
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


@pytest.mark.parametrize("begins_with_zeros", [True, False])
def test_a_step_that_joins_nodes_by_its_state_has_no_n_grams_though_its_first_call_reads_no_state(begins_with_zeros):
    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.read, self.keep = nn.Linear(4, 5), nn.Linear(5, 5)

        def forward(self, x, state=None):
            state = x.new_zeros(len(x), 5) if state is None else state
            return torch.tanh(self.read(x) + self.keep(state.index_add(0, ENDS[1], state[ENDS[0]])))

    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.step, self.head = Step(), nn.Linear(5, 2)

        def forward(self, series):
            state = series.new_zeros(3, 5) if begins_with_zeros else None
            for x in series[0].unbind(0):
                state = self.step(x, state)
            return self.head(state).mean(0, keepdim=True)

    torch.manual_seed(0)
    model, series = Graph().double(), numbers(1, 4, 3, 4)
    with pytest.raises(unrolled.UsageError, match=r"the nodes of a graph, use unrolled.account"):
        unrolled.explain(model, series, target=1)
    assert unrolled.account(model, series, target=1).closes
