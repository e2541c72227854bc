"""Small networks of torch.nn in double precision, strongly non-linear."""

from __future__ import annotations

import torch
from torch import nn

B, T, E, D = 3, 6, 4, 5
LENGTHS = torch.tensor([6, 2, 4])


def build(kind, options, shape, dtype=torch.float64, scale=2.0, **more):
    torch.manual_seed(7)
    rnn = kind(E, D, **options, **shape, **more)
    # relu networks grow without bound; the rest is made strongly non-linear
    for p in rnn.parameters():
        p.data.mul_(1.0 if options.get("nonlinearity") == "relu" else scale)
    return rnn.to(dtype)


def initial(rnn, dtype, batch=B):
    rows = rnn.num_layers * (1 + rnn.bidirectional)
    h = 0.5 * torch.randn(rows, batch, rnn.proj_size or D).to(dtype)
    return (h, 0.5 * torch.randn(rows, batch, D).to(dtype)) if isinstance(rnn, nn.LSTM) else h
