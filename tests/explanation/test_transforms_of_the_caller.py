"""A call within a transform of torch.func is refused with the way round; a model may use such transforms itself."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError

CALLS = {
    "explain": lambda model, x: torch.as_tensor(unrolled.explain(model, x, target=1).ledger.logit),
    "explain_batch": lambda model, x: torch.as_tensor(unrolled.explain_batch(model, x, target=1)[0].ledger.logit),
    "account": lambda model, x: unrolled.account(model, x, target=1).output.sum(),
    "check": lambda model, x: torch.as_tensor(float(unrolled.check(model, x).opens)),
}
TRANSFORMS = {
    "vmap": lambda call, x: torch.vmap(lambda each: call(each[None]))(x),
    "grad": lambda call, x: torch.func.grad(call)(x),
    "jvp": lambda call, x: torch.func.jvp(call, (x,), (x,)),
}


class Series(nn.Module):
    def __init__(self, head):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head = nn.GRU(3, 5, batch_first=True), head

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


class Mapped(nn.Linear):
    """Reads each state of a batch by itself."""

    def forward(self, states):
        return torch.vmap(super().forward)(states)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_within_a_transform(call, transform):
    model, x = Series(nn.Linear(5, 2)), torch.ones(1, 4, 3, device="cpu")
    with pytest.raises(UsageError, match=r"which vmap, grad and jvp of torch\.func do not allow"):
        TRANSFORMS[transform](lambda each: CALLS[call](model, each), x)
    assert torch.isfinite(CALLS[call](model, x))  # the control


@pytest.mark.parametrize("call", CALLS)
def test_a_transform_within_a_model(call):
    assert torch.isfinite(CALLS[call](Series(Mapped(5, 2)), torch.ones(1, 4, 3, device="cpu")))
