"""Models of many forms, each with the arguments of one call."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

WORDS, E, D = 20, 5, 8


def ids(*shape):
    return torch.randint(1, WORDS, shape)


class Classifier(nn.Module):
    """Embedding, recurrent network, pooling, head."""

    def __init__(self, kind=nn.LSTM, layers=1, both=False, pool="mean", head="mlp", packed=False, **options):
        super().__init__()
        self.embed = nn.Embedding(WORDS, E, padding_idx=0)
        self.rnn = kind(E, D, layers, bidirectional=both, batch_first=True, **options)
        width = D * (2 if both else 1)
        self.score = nn.Linear(width, 1)
        self.head = {
            "linear": lambda: nn.Linear(width, 3),
            "mlp": lambda: nn.Sequential(nn.Linear(width, 6), nn.ReLU(), nn.Linear(6, 3)),
            "norm": lambda: nn.Sequential(
                nn.LayerNorm(width), nn.Dropout(0.5), nn.Linear(width, 6), nn.GELU(), nn.Linear(6, 3)
            ),
            "gated": lambda: nn.Sequential(nn.Linear(width, 12), nn.GLU(), nn.Linear(6, 3)),
        }[head]()
        self.pool, self.packed = pool, packed

    def forward(self, tokens, lengths=None):
        given = self.embed(tokens)
        if self.packed:
            given = pack_padded_sequence(given, lengths, batch_first=True, enforce_sorted=False)
        states, last = self.rnn(given)
        if self.packed:
            states, _ = pad_packed_sequence(states, batch_first=True, total_length=tokens.shape[1])
        return self.head(self.pooled(states, last, tokens))

    def pooled(self, states, last, tokens):
        mask = (tokens != 0)[..., None]
        if self.pool == "last":
            final = last[0] if isinstance(last, tuple) else last
            return torch.cat([final[-2], final[-1]], -1) if self.rnn.bidirectional else final[-1]
        if self.pool == "mean":
            return (states * mask).sum(1) / mask.sum(1)
        if self.pool == "max":
            return states.masked_fill(~mask, -torch.inf).max(dim=1).values
        if self.pool == "attention":
            weights = self.score(torch.tanh(states)).masked_fill(~mask, -torch.inf).softmax(dim=1)
            return (weights * states).sum(dim=1)
        raise ValueError(self.pool)


class Sorted(Classifier):
    """Sorts its batch by length, and restores the order unless told otherwise."""

    def __init__(self, restores=True):
        super().__init__()
        self.restores = restores

    def forward(self, tokens, lengths):
        order = lengths.argsort(descending=True)
        given = pack_padded_sequence(self.embed(tokens[order]), lengths[order], batch_first=True)
        states, _ = pad_packed_sequence(self.rnn(given)[0], batch_first=True)
        out = self.head(states.sum(1))
        return out[order.argsort()] if self.restores else out


class Siamese(nn.Module):
    """One encoder for two texts."""

    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(WORDS, E), nn.GRU(E, D, batch_first=True)
        self.head = nn.Linear(4 * D, 2)

    def encode(self, tokens):
        return self.rnn(self.embed(tokens))[0].max(1).values

    def forward(self, first, second):
        a, b = self.encode(first), self.encode(second)
        return self.head(torch.cat([a, b, a * b, (a - b).abs()], -1))


class Hierarchy(nn.Module):
    """Words to sentences, sentences to a document: two networks."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, E)
        self.words, self.sentences = nn.GRU(E, D, batch_first=True), nn.LSTM(D, D, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * D, 2)

    def forward(self, tokens):
        batch, count, length = tokens.shape
        _, last = self.words(self.embed(tokens.view(batch * count, length)))
        return self.head(self.sentences(last[-1].view(batch, count, D))[0].mean(1))


class Decoder(nn.Module):
    """Encoder, and a decoder that attends, called step by step."""

    def __init__(self):
        super().__init__()
        self.source, self.goal = nn.Embedding(WORDS, E), nn.Embedding(WORDS, E)
        self.encoder, self.cell = nn.LSTM(E, D, batch_first=True), nn.LSTMCell(E + D, D)
        self.out = nn.Linear(2 * D, WORDS)

    def forward(self, source, goal):
        states, (h, c) = self.encoder(self.source(source))
        h, c, outputs = h[0], c[0], []
        given = self.goal(goal)
        context = torch.zeros_like(h)
        for t in range(goal.shape[1]):
            h, c = self.cell(torch.cat([given[:, t], context], -1), (h, c))
            weights = torch.bmm(states, h[:, :, None]).softmax(1)
            context = (weights * states).sum(1)
            outputs.append(self.out(torch.cat([h, context], -1)))
        return torch.stack(outputs, 1)


class Loop(nn.Module):
    """A loop over a cell of torch, with a learned first state."""

    def __init__(self, cell=nn.GRUCell):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(WORDS, E), cell(E, D), nn.Linear(D, 2)
        self.first = nn.Parameter(torch.randn(D))

    def forward(self, tokens):
        h = self.first.expand(len(tokens), D)
        state = (h, torch.zeros_like(h)) if isinstance(self.cell, nn.LSTMCell) else h
        for given in self.embed(tokens).unbind(1):
            state = self.cell(given, state)
        return self.head(state[0] if isinstance(state, tuple) else state)


class Bag(nn.Module):
    """A bag of words."""

    def __init__(self, mode):
        super().__init__()
        self.bag, self.head = (
            nn.EmbeddingBag(WORDS, E, mode=mode),
            nn.Sequential(nn.Linear(E, 4), nn.Tanh(), nn.Linear(4, 2)),
        )

    def forward(self, tokens, offsets=None):
        return self.head(self.bag(tokens, offsets))


class Tagger(nn.Module):
    """Features in, one output for each position."""

    def __init__(self, batch_first=True):
        super().__init__()
        self.conv = nn.Conv1d(3, E, 3, padding=1)
        self.rnn = nn.GRU(E, D, 2, batch_first=batch_first, bidirectional=True)
        self.head, self.batch_first = nn.Linear(2 * D, 4), batch_first

    def forward(self, x):
        z = self.conv(x.transpose(1, 2)).transpose(1, 2).relu()
        if self.batch_first:
            return self.head(self.rnn(z)[0])
        return self.head(self.rnn(z.transpose(0, 1))[0]).transpose(0, 1)


class Transformer(nn.Module):
    """No recurrent network at all."""

    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(WORDS, D), nn.Parameter(torch.randn(12, D))
        layer = nn.TransformerEncoderLayer(D, 2, 16, batch_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(D, 3)

    def forward(self, tokens):
        z = self.embed(tokens) + self.place[: tokens.shape[1]]
        z = self.body(z, src_key_padding_mask=tokens == 0)
        return self.head(F.normalize(z.mean(1), dim=-1))
