"""A model with a recurrent network in it, as a user may have written it."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

V, E, D, C, B, T = 20, 6, 7, 3, 3, 6


class Model(nn.Module):
    """Any pooling, any head, padded or packed."""

    def __init__(self, kind=nn.GRU, pool="last", head="linear", packed=False, batch_first=True, **options):
        super().__init__()
        torch.manual_seed(3)
        self.embedding = nn.Embedding(V, E)
        self.encoder = nn.ModuleDict({"net": kind(E, D, batch_first=batch_first, **options)})
        self.pool, self.packed, self.first = pool, packed, batch_first
        width = (self.net.proj_size or D) * (1 + self.net.bidirectional)
        self.query = nn.Linear(width, 1)
        self.head = {
            "linear": lambda: nn.Linear(width, C),
            "relu": lambda: nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, C)),
            "gelu": lambda: nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, C)),
            "norm": lambda: nn.Sequential(nn.LayerNorm(width), nn.Dropout(0.5), nn.Linear(width, C)),
        }[head]()
        for p in self.net.parameters():
            p.data.mul_(2.5)

    @property
    def net(self):
        return self.encoder["net"]

    def forward(self, tokens, lengths=None, state=None):
        x = self.embedding(tokens)
        n = torch.full((len(x),), x.shape[1], device=x.device) if lengths is None else lengths.to(x.device)
        mask = torch.arange(x.shape[1], device=x.device) < n[:, None]
        x = x if self.first else x.transpose(0, 1)
        if self.packed:
            x = pack_padded_sequence(x, n.cpu(), batch_first=self.first, enforce_sorted=False)
        out, final = self.net(x, state)
        if self.packed:
            out, _ = pad_packed_sequence(out, batch_first=self.first)
        out = out if self.first else out.transpose(0, 1)
        h = final[0] if isinstance(final, tuple) else final
        match self.pool:
            case "last":
                z = out[torch.arange(len(out)), n - 1]
            case "h_n":
                z = torch.cat(list(h[-(1 + self.net.bidirectional) :]), dim=-1)
            case "mean":
                z = (out * mask[..., None]).sum(1) / n[:, None]
            case "max":
                z = out.masked_fill(~mask[..., None], -torch.inf).max(1).values
            case "attention":
                weight = self.query(torch.tanh(out)).masked_fill(~mask[..., None], -torch.inf).softmax(1)
                z = (weight * out).sum(1)
        return self.head(z)
