# ruff: noqa: ARG005  # the models are written as users write them
"""A language model with dropped weights as a classifier: AWD-LSTM and ULMFiT."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from outside_judge import Model, ids, judge_account, judge_explanation, one_of

V = 30


class LockedDropout(nn.Module):
    def forward(self, x, p):
        if not self.training or not p:
            return x
        m = x.data.new(1, x.size(1), x.size(2)).bernoulli_(1 - p) / (1 - p)
        return m.expand_as(x) * x


class WeightDrop(nn.Module):
    def __init__(self, module, weights, p):
        super().__init__()
        self.module = module
        self.weights = weights
        self.p = p
        self.module.flatten_parameters = lambda *a, **k: None
        for n in weights:
            w = getattr(module, n)
            del module._parameters[n]
            module.register_parameter(n + "_raw", nn.Parameter(w.data))

    def _setweights(self):
        for n in self.weights:
            raw = getattr(self.module, n + "_raw")
            w = F.dropout(raw, p=self.p, training=self.training)
            if isinstance(w, nn.Parameter):
                w = w.clone()
            setattr(self.module, n, w)

    def forward(self, *args):
        self._setweights()
        return self.module(*args)


def embedded_dropout(embed, words, p):
    w = embed.weight
    if p:
        mask = w.data.new().resize_((w.size(0), 1)).bernoulli_(1 - p).expand_as(w) / (1 - p)
        w = mask * w
    pad = embed.padding_idx if embed.padding_idx is not None else -1
    return F.embedding(words, w, pad, embed.max_norm, embed.norm_type, embed.scale_grad_by_freq, embed.sparse)


class AWD(nn.Module):
    def __init__(self):
        super().__init__()
        self.lockdrop = LockedDropout()
        self.drop = nn.Dropout(0.4)
        self.encoder = nn.Embedding(V, 5)
        self.rnns = nn.ModuleList(
            [WeightDrop(nn.LSTM(5 if k == 0 else 6, 6 if k < 2 else 5), ["weight_hh_l0"], 0.5) for k in range(3)]
        )
        self.decoder = nn.Linear(5, V)
        self.decoder.weight = self.encoder.weight

    def init_hidden(self, b):
        w = next(self.parameters()).data
        return [(w.new(1, b, h).zero_(), w.new(1, b, h).zero_()) for h in (6, 6, 5)]

    def forward(self, input, hidden=None, return_h=False):
        if hidden is None:
            hidden = self.init_hidden(input.size(1))
        e = embedded_dropout(self.encoder, input, 0.1 if self.training else 0)
        raw = self.lockdrop(e, 0.3)
        new = []
        outs = []
        for k, r in enumerate(self.rnns):
            raw, h = r(raw, hidden[k])
            new.append(h)
            if k < 2:
                raw = self.lockdrop(raw, 0.2)
            outs.append(raw)
        out = self.lockdrop(raw, 0.4)
        result = self.decoder(out.view(-1, out.size(2)))
        return (result.view(out.size(0), out.size(1), -1), new)


class ULMFiT(nn.Module):
    """AWD backbone + concat pooling over outputs with mask + batchnorm head"""

    def __init__(self):
        super().__init__()
        self.lm = AWD()
        self.head = nn.Sequential(
            nn.BatchNorm1d(15),
            nn.Dropout(0.2),
            nn.Linear(15, 8),
            nn.ReLU(inplace=True),
            nn.BatchNorm1d(8),
            nn.Linear(8, 3),
        )
        self.head[0].running_mean.normal_()
        self.head[0].running_var.uniform_(0.5, 2)

    def forward(self, ids):
        self.lm.eval() if not self.training else None
        x = ids.t()
        raw = self.lm.encoder(x)
        for r in self.lm.rnns:
            raw, _ = r(raw)
        out = raw.transpose(0, 1)
        return self.head(torch.cat([out[:, -1], out.max(1)[0], out.mean(1)], 1))


TEXT = ids(2, 5)
ULMFIT = Model(ULMFiT, (TEXT,), 1, (0,), alone=one_of(TEXT))


def test_the_account_is_right():
    judge_account(ULMFIT)


def test_the_explanation_is_right():
    judge_explanation(ULMFIT)
