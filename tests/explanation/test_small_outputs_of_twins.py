"""A twin in the place of a traced network is refused if it gives another output, however small the outputs are."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ParityError


class GRU(nn.GRU):
    """Halves its results, which neither its name nor its weights say."""

    def forward(self, input, hx=None):
        outputs, final = super().forward(input, hx)
        return outputs * 0.5, final * 0.5


class Traced(nn.Module):
    """Reads a traced network with weights of some size; two of its outputs may cancel."""

    def __init__(self, kind: type[nn.GRU], size: float, cancels: bool = False) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tracing a check of shapes
            self.rnn = torch.jit.trace(kind(4, 5, batch_first=True), torch.randn(1, 4, 4))
        self.head, self.cancels = nn.Linear(5, 2, bias=False), cancels
        self.head.weight.data.mul_(size)

    def forward(self, x):
        outputs = self.rnn(x)[0]
        if self.cancels:
            outputs = 1e4 * outputs - (1e4 - 1e-4) * outputs.flip(1).flip(1)
        return self.head(outputs[:, -1])


@pytest.mark.parametrize("call", [unrolled.account, unrolled.explain], ids=["account", "explain"])
@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-8, 1e-20])
def test_another_network_is_refused_however_small_its_outputs_are(size, call):
    torch.manual_seed(0)
    x = torch.randn(1, 4, 4)
    with pytest.raises(ParityError, match="gives another output"):
        call(Traced(GRU, size), x, target=0)
    model = Traced(nn.GRU, size)  # the control
    found = call(model, x, target=0)
    logit = found.output[0] if call is unrolled.account else found.ledger.logit
    assert float(logit) == pytest.approx(float(model(x)[0, 0].detach()), rel=1e-4)


def test_outputs_that_are_small_since_large_sums_cancel_are_rounding():
    torch.manual_seed(0)
    assert unrolled.account(Traced(nn.GRU, 1.0, cancels=True), torch.randn(1, 4, 4), target=0) is not None
