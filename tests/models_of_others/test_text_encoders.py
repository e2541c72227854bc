# ruff: noqa: B905  # the models are written as users write them
"""Encoders of texts: siamese, hierarchical, attentive, of characters; padding by masks, sorting and packing."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence as pack
from torch.nn.utils.rnn import pad_packed_sequence as unpack

from outside_judge import Model, ids, judge_account, judge_explanation, one_of

V = 30


class Highway(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.h = nn.Linear(d, d)
        self.t = nn.Linear(d, d)

    def forward(self, x):
        g = torch.sigmoid(self.t(x))
        return g * F.relu(self.h(x)) + (1 - g) * x


class ELMo(nn.Module):
    """char cnn -> highway -> 2 layers of fwd and bwd LSTMs by themselves -> scalar mix -> projection"""

    def __init__(self, layers=2):
        super().__init__()
        self.char = nn.Embedding(V, 4, padding_idx=0)
        self.convs = nn.ModuleList([nn.Conv1d(4, 4, k) for k in (1, 2, 3)])
        self.hw = nn.ModuleList([Highway(12)])
        self.proj = nn.Linear(12, 5)
        self.fwd = nn.ModuleList([nn.LSTM(5, 8, batch_first=True, proj_size=5) for _ in range(layers)])
        self.bwd = nn.ModuleList([nn.LSTM(5, 8, batch_first=True, proj_size=5) for _ in range(layers)])
        self.w = nn.ParameterList([nn.Parameter(torch.randn(1) * 0.3) for _ in range(layers + 1)])
        self.gamma = nn.Parameter(torch.tensor([1.2]))
        self.out = nn.Linear(10, 3)

    def forward(self, chars):
        b, t, c = chars.shape
        e = self.char(chars.view(-1, c)).transpose(1, 2)
        e = torch.cat([F.relu(conv(e)).max(dim=-1)[0] for conv in self.convs], -1)
        for h in self.hw:
            e = h(e)
        e = self.proj(e).view(b, t, -1)
        reps = [torch.cat([e, e], -1)]
        f = r = e
        for k, (lf, lb) in enumerate(zip(self.fwd, self.bwd)):
            fo, _ = lf(f)
            bo, _ = lb(r.flip(1))
            bo = bo.flip(1)
            f, r = (fo, bo) if k == 0 else (fo + f, bo + r)
            reps.append(torch.cat([f, r], -1))
        w = F.softmax(torch.cat(list(self.w)), 0)
        mix = self.gamma * sum((a * x for a, x in zip(w, reps)))
        return self.out(mix)


class InferSent(nn.Module):
    def __init__(self, cls=True):
        super().__init__()
        self.embed = nn.Embedding(V, 5)
        self.enc = nn.LSTM(5, 4, 1, bidirectional=True)
        self.cl = nn.Sequential(nn.Linear(32, 6), nn.Tanh(), nn.Linear(6, 3))

    def enc_one(self, sent, lens):
        s, idx = torch.sort(lens, descending=True)
        un = torch.argsort(idx)
        x = sent.index_select(1, idx)
        p = pack(x, s.cpu())
        o = unpack(self.enc(p)[0])[0]
        o = o.index_select(1, un)
        o = torch.where(o == 0, torch.tensor(-1000000000.0, dtype=o.dtype), o)
        emb = torch.max(o, 0)[0]
        if emb.ndimension() == 3:
            emb = emb.squeeze(0)
        return emb

    def forward(self, a, la, b, lb):
        u, v = (self.enc_one(self.embed(a.t()), la), self.enc_one(self.embed(b.t()), lb))
        return self.cl(torch.cat((u, v, torch.abs(u - v), u * v), 1))


class SelfAttentive(nn.Module):
    def __init__(self, hops=3):
        super().__init__()
        self.e = nn.Embedding(V, 5, padding_idx=0)
        self.lstm = nn.LSTM(5, 4, bidirectional=True, batch_first=True)
        self.w1 = nn.Linear(8, 6, bias=False)
        self.w2 = nn.Linear(6, hops, bias=False)
        self.fc = nn.Linear(8 * hops, 5)
        self.out = nn.Linear(5, 3)

    def forward(self, ids, hidden=None):
        o, _ = self.lstm(self.e(ids))
        a = self.w2(torch.tanh(self.w1(o))).transpose(1, 2)
        pen = -10000 * (ids == 0).to(o.dtype).unsqueeze(1)
        a = F.softmax(a + pen, -1)
        m = torch.bmm(a, o)
        return (self.out(F.relu(self.fc(m.view(len(ids), -1)))), a)


class HAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 5, padding_idx=0)
        self.w = nn.GRU(5, 4, bidirectional=True, batch_first=True)
        self.wa = nn.Linear(8, 8)
        self.wc = nn.Linear(8, 1, bias=False)
        self.s = nn.GRU(8, 4, bidirectional=True, batch_first=True)
        self.sa = nn.Linear(8, 8)
        self.sc = nn.Linear(8, 1, bias=False)
        self.fc = nn.Linear(8, 3)

    def forward(self, docs, sl, wl):
        ps = pack(docs, sl.cpu(), batch_first=True, enforce_sorted=False)
        pw = pack(wl, sl.cpu(), batch_first=True, enforce_sorted=False)
        x = self.e(ps.data)
        w = pack(x, pw.data.cpu(), batch_first=True, enforce_sorted=False)
        w = self.w(w)[0]
        att = self.wc(torch.tanh(self.wa(w.data))).squeeze(1)
        att = torch.exp(att - att.max())
        att, _ = unpack(
            nn.utils.rnn.PackedSequence(att, w.batch_sizes, w.sorted_indices, w.unsorted_indices), batch_first=True
        )
        alpha = att / att.sum(1, keepdim=True)
        h, _ = unpack(w, batch_first=True)
        s = (h * alpha.unsqueeze(2)).sum(1)
        p = self.s(nn.utils.rnn.PackedSequence(s, ps.batch_sizes, ps.sorted_indices, ps.unsorted_indices))[0]
        att = self.sc(torch.tanh(self.sa(p.data))).squeeze(1)
        att = torch.exp(att - att.max())
        att, _ = unpack(
            nn.utils.rnn.PackedSequence(att, p.batch_sizes, p.sorted_indices, p.unsorted_indices), batch_first=True
        )
        beta = att / att.sum(1, keepdim=True)
        d, _ = unpack(p, batch_first=True)
        d = (d * beta.unsqueeze(2)).sum(1)
        return (self.fc(d), alpha, beta)


class TextRCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 5)
        self.lstm = nn.LSTM(5, 4, 2, bidirectional=True, batch_first=True, dropout=0.5)
        self.fc = nn.Linear(13, 3)

    def forward(self, x):
        e = self.e(x)
        o, _ = self.lstm(e)
        o = torch.cat((e, o), 2)
        o = F.relu(o)
        o = o.permute(0, 2, 1)
        o = nn.MaxPool1d(x.size(1))(o).squeeze()
        if o.dim() == 1:
            o = o.unsqueeze(0)
        return self.fc(o)


class Manhattan(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 5)
        self.lstm = nn.LSTM(5, 4, batch_first=True)

    def forward(self, a, b):
        h = [self.lstm(self.e(x))[1][0].squeeze(0) for x in (a, b)]
        return torch.exp(-torch.norm(h[0] - h[1], 1, 1))


class ManhattanSum(Manhattan):
    def forward(self, a, b):
        h = [self.lstm(self.e(x))[1][0].permute(1, 2, 0).squeeze(2) for x in (a, b)]
        return torch.exp(-torch.sum(torch.abs(h[0] - h[1]), dim=1, keepdim=True))


class ESIM(nn.Module):
    def __init__(self, fill=float("-inf")):
        super().__init__()
        self.fill = fill
        self.e = nn.Embedding(V, 5, padding_idx=0)
        self.bn = nn.BatchNorm1d(5)
        self.l1 = nn.LSTM(5, 4, bidirectional=True, batch_first=True)
        self.proj = nn.Sequential(nn.Linear(32, 5), nn.ReLU())
        self.l2 = nn.LSTM(5, 4, bidirectional=True, batch_first=True)
        self.fc = nn.Sequential(
            nn.BatchNorm1d(32), nn.Linear(32, 6), nn.ELU(inplace=True), nn.Dropout(0.5), nn.Linear(6, 3)
        )

    def att(self, a, b, ma, mb):
        s = torch.matmul(a, b.transpose(1, 2))
        fa = ma.to(a.dtype).masked_fill_(ma, self.fill)
        fb = mb.to(a.dtype).masked_fill_(mb, self.fill)
        wa = F.softmax(s + fb.unsqueeze(1), -1)
        wb = F.softmax(s.transpose(1, 2) + fa.unsqueeze(1), -1)
        return (torch.matmul(wa, b), torch.matmul(wb, a))

    def pool(self, x):
        p1 = F.avg_pool1d(x.transpose(1, 2), x.size(1)).squeeze(-1)
        p2 = F.max_pool1d(x.transpose(1, 2), x.size(1)).squeeze(-1)
        return torch.cat([p1, p2], 1)

    def forward(self, a, b):
        ma, mb = (a.eq(0), b.eq(0))
        x, y = (self.bn(self.e(i).transpose(1, 2).contiguous()).transpose(1, 2) for i in (a, b))
        x, y = (self.l1(x)[0], self.l1(y)[0])
        x2, y2 = self.att(x, y, ma, mb)
        c = [self.l2(self.proj(torch.cat([p, q, p - q, p * q], -1)))[0] for p, q in ((x, x2), (y, y2))]
        return self.fc(torch.cat([self.pool(z) for z in c], -1))


class Softmaxed(nn.Module):
    def __init__(self, kind=nn.LSTM, last="softmax"):
        super().__init__()
        self.embedding = nn.Embedding(V, 5)
        self.lstm = kind(5, 6, 2, batch_first=True, dropout=0.2)
        self.fc = nn.Linear(6, 1 if last == "sigmoid" else 3)
        self.last = last

    def forward(self, x):
        o, _ = self.lstm(self.embedding(x))
        o = self.fc(o[:, -1, :])
        return torch.sigmoid(o) if self.last == "sigmoid" else F.softmax(o, dim=1)


class SiameseSoftmax(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 4)
        self.r = nn.GRU(4, 5, batch_first=True)
        self.o = nn.Sequential(nn.Linear(10, 3), nn.Softmax(dim=1))

    def forward(self, a, b):
        return self.o(torch.cat([self.r(self.e(x))[1][-1] for x in (a, b)], 1))


ONE, OTHER = torch.tensor([[4, 9, 7, 3, 12], [8, 2, 6, 0, 0]]), torch.tensor([[14, 19, 17, 13], [18, 22, 16, 11]])
FIRST, SECOND = torch.tensor([5, 3]), torch.tensor([4, 4])
TEXT, PADDED = ids(2, 5), torch.tensor([[14, 19, 17, 0], [18, 22, 16, 11]])
LETTERS = ids(2, 12).view(2, 4, 3)
PAGES = torch.tensor([[[3, 4, 5, 0], [6, 7, 0, 0], [0, 0, 0, 0]], [[8, 9, 10, 11], [12, 13, 14, 0], [15, 16, 0, 0]]])
SENTENCES, WORDS = torch.tensor([2, 3]), torch.tensor([[3, 2, 0], [4, 3, 2]])
MODELS = {
    "ELMo": Model(ELMo, (LETTERS,), lambda out: out[:, 1, 2], alone=one_of(LETTERS)),
    "InferSent": Model(InferSent, (ONE, FIRST, OTHER, SECOND), 1, (0, 2), (8, 9), one_of(ONE, FIRST, OTHER, SECOND)),
    "self-attentive": Model(SelfAttentive, (ONE,), lambda out: out[0][:, 1], (0,), (8, 9), one_of(ONE)),
    "hierarchical": Model(
        HAN, (PAGES, SENTENCES, WORDS), lambda out: out[0][:, 1], (0,), alone=one_of(PAGES, SENTENCES, WORDS)
    ),
    "RCNN": Model(TextRCNN, (TEXT,), 2, (0,), alone=one_of(TEXT)),
    "Manhattan": Model(ManhattanSum, (TEXT, OTHER), 0, (0, 1), alone=one_of(TEXT, OTHER)),
    "ESIM": Model(ESIM, (ONE, PADDED), 1, (0, 1), (3, 8, 9), one_of(ONE, PADDED)),
    "softmax": Model(Softmaxed, (TEXT,), 1, (0,), alone=one_of(TEXT)),
    "sigmoid": Model(lambda: Softmaxed(last="sigmoid"), (TEXT,), 0, (0,), alone=one_of(TEXT)),
    "siamese softmax": Model(SiameseSoftmax, (TEXT, OTHER), 1, (0, 1), alone=one_of(TEXT, OTHER)),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_account_is_right(name):
    judge_account(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_the_explanation_is_right(name):
    judge_explanation(MODELS[name])
