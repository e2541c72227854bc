"""Small encoders in float64, and inputs for them."""

from __future__ import annotations

import torch

from reference_encoders import TABLES
from unrolled.composition import ENCODERS
from unrolled.composition.base import CompositionEncoder

B, T = 3, 6
LENGTHS = (6, 2, 4)
SIZES = {"mm": (4, 4)}
COMPOSITIONS = [name for name, kind in ENCODERS.members.items() if issubclass(kind, CompositionEncoder)]
BASELINES = ["cnn", "transformer", "window"]
PUBLISHED = [*TABLES, *BASELINES]
"""The encoders whose properties the tests know; the contract tests run over every encoder."""
CAUSAL = [*COMPOSITIONS, "cnn", "window"]


def made(name, **options):
    torch.manual_seed(11)
    encoder = ENCODERS.get(name)(*SIZES.get(name, (3, 4)), **options).double().eval()
    for parameter in encoder.parameters():
        parameter.data.mul_(2.0)
    return encoder


def inputs(encoder, time=T):
    torch.manual_seed(12)
    return torch.randn(B, time, encoder.input_size).double()
