# ruff: noqa: ARG005  # every operation takes x and y
"""Logarithms of value obey the three laws of every rule, and credit what the same computation without them credits."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from logarithm_zoo import (
    INDEX,
    MASK,
    C,
    assert_same_contributions,
    assert_value_linearity_and_sum,
    log_positive,
    log_signed,
    positive,
)


def in_place(x):
    u = log_positive(x)
    u += 1.0
    u.neg_().neg_()
    return u.exp_()


SAME = {
    "log": (lambda x, y: log_positive(x).exp(), lambda x, y: positive(x)),
    "log of a gate": (lambda x, y: torch.sigmoid(x).log().exp() * y, lambda x, y: torch.sigmoid(x) * y),
    "detached": (lambda x, y: torch.sigmoid(x).log().detach().exp() * y, lambda x, y: torch.sigmoid(x) * y),
    "logsigmoid": (lambda x, y: F.logsigmoid(x).exp() * y, lambda x, y: torch.sigmoid(x) * y),
    "a gate alone": (lambda x, y: F.logsigmoid(x).exp(), lambda x, y: torch.sigmoid(x)),
    "softplus": (lambda x, y: (-F.softplus(-x)).exp() * y, lambda x, y: torch.sigmoid(x) * y),
    "softplus times -1": (lambda x, y: (F.softplus(-x) * -1).exp() * y, lambda x, y: torch.sigmoid(x) * y),
    "-1 times softplus": (lambda x, y: (-1 * F.softplus(-x)).exp() * y, lambda x, y: torch.sigmoid(x) * y),
    "arguments by name": (
        lambda x, y: torch.exp(input=torch.logcumsumexp(input=torch.log(input=positive(x)), dim=1)),
        lambda x, y: positive(x).cumsum(1),
    ),
    "the other gate": (lambda x, y: (1 - F.logsigmoid(x).exp()) * y, lambda x, y: (1 - torch.sigmoid(x)) * y),
    "a moved gate": (
        lambda x, y: F.logsigmoid(x).exp()[:, 1:].transpose(1, 2) * y[:, 1:].mT,
        lambda x, y: torch.sigmoid(x)[:, 1:].transpose(1, 2) * y[:, 1:].mT,
    ),
    "add": (lambda x, y: (log_positive(x) + log_positive(y)).exp(), lambda x, y: positive(x) * positive(y)),
    "add a gate": (lambda x, y: (log_positive(y) - F.softplus(x)).exp(), lambda x, y: positive(y) * torch.sigmoid(-x)),
    "sub": (lambda x, y: (log_positive(x) - log_positive(y)).exp(), lambda x, y: positive(x) / positive(y)),
    "add a constant": (lambda x, y: (C + log_positive(x)).exp(), lambda x, y: positive(x) * C.exp()),
    "in place": (lambda x, y: in_place(x), lambda x, y: positive(x) * torch.e),
    "add what is no logarithm": (
        lambda x, y: (F.logsigmoid(x) + y).exp() * y,
        lambda x, y: torch.sigmoid(x) * y.exp() * y,
    ),
    "sub what is no logarithm": (
        lambda x, y: (F.logsigmoid(x) + (y - x)).exp() * y,
        lambda x, y: torch.sigmoid(x) * (y - x).exp() * y,
    ),
    "sub from a constant": (lambda x, y: (1.0 - F.softplus(-x)).exp() + y, lambda x, y: torch.e * torch.sigmoid(x) + y),
    "add a wider constant": (
        lambda x, y: (log_positive(x[:, :1]) + C).exp(),
        lambda x, y: positive(x[:, :1]) * C.exp(),
    ),
    "clamp": (lambda x, y: log_positive(x).clamp(min=-50.0).exp(), lambda x, y: positive(x)),
    "where": (
        lambda x, y: torch.where(x >= 0, log_positive(x), -F.softplus(-x)).exp(),
        lambda x, y: torch.where(x >= 0, positive(x), torch.sigmoid(x)),
    ),
    "where a number": (
        lambda x, y: torch.where(MASK, log_positive(x), -torch.inf).exp(),
        lambda x, y: torch.where(MASK, positive(x), 0.0),
    ),
    "where as a method": (
        lambda x, y: log_positive(x).where(MASK, -F.softplus(y)).exp() + y.where(MASK, x) * x.where(MASK, 2.0),
        lambda x, y: positive(x).where(MASK, torch.sigmoid(-y)) + y.where(MASK, x) * x.where(MASK, 2.0),
    ),
    "masked_fill": (
        lambda x, y: log_positive(x).masked_fill(MASK, -torch.inf).exp(),
        lambda x, y: positive(x).masked_fill(MASK, 0.0),
    ),
    "cat": (
        lambda x, y: torch.cat([log_positive(x), C, log_positive(y)], 1).exp(),
        lambda x, y: torch.cat([positive(x), C.exp(), positive(y)], 1),
    ),
    "stack": (
        lambda x, y: torch.stack((log_positive(x), -F.softplus(y)), 1).exp(),
        lambda x, y: torch.stack((positive(x), torch.sigmoid(-y)), 1),
    ),
    "pad": (
        lambda x, y: F.pad(log_positive(x), (0, 0, 1, 0), value=-torch.inf).exp(),
        lambda x, y: F.pad(positive(x), (0, 0, 1, 0)),
    ),
    "pad by one": (
        lambda x, y: F.pad(log_positive(x), (0, 0, 1, 0)).exp(),
        lambda x, y: F.pad(positive(x), (0, 0, 1, 0), value=1.0),
    ),
    "rearranged": (
        lambda x, y: log_positive(x).mT.reshape(2, 20).unsqueeze(0).squeeze(0).view(2, 4, 5).flip(1)[:, 1:].exp(),
        lambda x, y: positive(x).mT.reshape(2, 20).view(2, 4, 5).flip(1)[:, 1:],
    ),
    "view of what is expanded": (
        lambda x, y: (log_positive(x[:, :1]) + C).view(2, 20).exp(),
        lambda x, y: (positive(x[:, :1]) * C.exp()).view(2, 20),
    ),
    "chunk and gather": (
        lambda x, y: log_positive(x).gather(1, INDEX).chunk(2, -1)[1].contiguous().exp(),
        lambda x, y: positive(x).gather(1, INDEX).chunk(2, -1)[1],
    ),
    "a number of any sign": (lambda x, y: log_signed(y).exp().real, lambda x, y: y),
    "a complex number": (lambda x, y: (x + y * 1j).log().exp().imag, lambda x, y: y),
    "a quotient of any sign": (lambda x, y: (log_positive(x) - log_signed(y)).exp().real, lambda x, y: positive(x) / y),
    "logsumexp": (lambda x, y: log_positive(x).logsumexp(1).exp(), lambda x, y: positive(x).sum(1)),
    "logsumexp of axes": (
        lambda x, y: torch.logsumexp(log_positive(x), dim=(1, 2), keepdim=True).exp(),
        lambda x, y: positive(x).sum((1, 2), keepdim=True),
    ),
    "logaddexp": (
        lambda x, y: torch.logaddexp(log_positive(x), F.logsigmoid(y)).exp(),
        lambda x, y: positive(x) + torch.sigmoid(y),
    ),
    "logaddexp of a constant": (
        lambda x, y: torch.logaddexp(C, log_positive(x)).exp(),
        lambda x, y: C.exp() + positive(x),
    ),
    "logcumsumexp": (lambda x, y: log_positive(x).logcumsumexp(1).exp(), lambda x, y: positive(x).cumsum(1)),
    "logcumsumexp after nothing": (
        lambda x, y: F.pad(log_positive(x), (0, 0, 2, 0), value=-torch.inf).logcumsumexp(1).exp(),
        lambda x, y: F.pad(positive(x), (0, 0, 2, 0)).cumsum(1),
    ),
}
LAWS = {
    **{name: in_logarithms for name, (in_logarithms, _) in SAME.items()},
    "a bound that is reached": lambda x, y: log_positive(x).clamp(-0.5, 0.1).exp(),
    "an inverse": lambda x, y: F.softplus(x).exp() * y,
    "a power": lambda x, y: (2.5 * log_positive(x)).exp() * y,
    "a product over time": lambda x, y: F.logsigmoid(x).cumsum(1).exp() * y,
    "beside what is held": lambda x, y: torch.where(MASK, F.logsigmoid(x).cumsum(1), log_positive(y)).exp(),
    "a logarithm among values": lambda x, y: torch.cat([log_positive(x), y], 1).exp() * 2 + x.repeat(1, 2, 1),
    "a logarithm itself": lambda x, y: log_positive(x) + F.logsigmoid(y) + y,
    "of what carries value otherwise": lambda x, y: y.logcumsumexp(1) + torch.logaddexp(x, y) + x,
    "changed since": lambda x, y: changed_since(x) * y,
    "smaller than numbers can be": lambda x, y: (F.logsigmoid(x - 2000) + 2000).exp() + y,
}


def changed_since(x):
    u = log_positive(x)
    u[:, 0] = 3.0
    return u.exp()


@pytest.mark.parametrize("name", LAWS)
def test_value_linearity_and_sum(name):
    assert_value_linearity_and_sum(LAWS[name])


@pytest.mark.parametrize("name", SAME)
def test_logarithms_credit_what_values_credit(name):
    assert_same_contributions(*SAME[name])
