# ruff: noqa: ARG005  # every operation takes x and y
"""Logarithms of value obey the three laws of every rule, and credit what the same computation without them credits."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from unrolled.held_forward import HeldForward, Rows
from unrolled.held_forward.graph import check_linear

torch.manual_seed(0)
X = torch.randn(2, 5, 4, dtype=torch.float64)
Y = torch.randn(2, 5, 4, dtype=torch.float64)
X[0, 0, 0] = 0.0
C = torch.randn(2, 5, 4, dtype=torch.float64)
MASK = torch.rand(2, 5, 4) > 0.4
INDEX = torch.randint(0, 5, (2, 5, 4))


def positive(x):
    return F.relu(x) + 0.5


def log_positive(x):
    return positive(x).log()


def scan(a, v):
    """Compute h_t = a_t h_{t-1} + v_t step by step."""
    h, states = torch.zeros_like(v[:, 0]), []
    for t in range(v.shape[1]):
        h = a[:, t] * h + v[:, t]
        states.append(h)
    return torch.stack(states, 1)


def log_scan(log_a, log_v):
    whole = log_a.cumsum(1)
    return (whole + (log_v - whole).logcumsumexp(1)).exp()


def heinsen(log_a, log_v):
    """Compute it with a state before, as its author does."""
    whole = F.pad(log_a.cumsum(1), (0, 0, 1, 0))
    joined = torch.cat((torch.full_like(log_v[:, :1], -torch.inf), log_v), 1)
    return (whole + torch.logcumsumexp(joined - whole, dim=1)).exp()[:, 1:]


def sliced_scan(log_a, log_v):
    whole = F.pad(log_a.cumsum(1), (0, 0, 1, 0))[:, 1:]
    return (whole + (log_v - whole).logcumsumexp(1)).exp()


def stable_scan(log_a, log_v):
    """Compute it with cat for pad, and a maximum that is taken out."""
    whole = torch.cat((torch.zeros_like(log_a[:, :1]), log_a), 1).cumsum(1)[:, 1:]
    scaled = log_v - whole
    top = scaled.amax(1, keepdim=True)
    return ((scaled - top).exp().cumsum(1).log() + top + whole).exp()


def shifted_scan(log_a, log_v, shift):
    whole = shift(log_a.cumsum(1))
    return (whole + (log_v - whole).logcumsumexp(1)).exp()


def exponential_gates(f, i, z):
    """Compute the mean Σ e^i z / Σ e^i with forget gates σ(f), step by step."""
    content, whole, states = torch.zeros_like(z[:, 0]), torch.zeros_like(z[:, 0]), []
    for t in range(z.shape[1]):
        content = torch.sigmoid(f[:, t]) * content + i[:, t].exp() * z[:, t]
        whole = torch.sigmoid(f[:, t]) * whole + i[:, t].exp()
        states.append(content / whole)
    return torch.stack(states, 1)


def stable_exponential_gates(f, i, z):
    """Compute it with the largest exponent taken out, as sLSTMs do."""
    content = whole = torch.zeros_like(z[:, 0])
    top, states = torch.full_like(z[:, 0], -torch.inf), []
    for t in range(z.shape[1]):
        log_f = F.logsigmoid(f[:, t])
        higher = torch.maximum(log_f + top, i[:, t])
        kept, new, top = (log_f + top - higher).exp(), (i[:, t] - higher).exp(), higher
        content, whole = kept * content + new * z[:, t], kept * whole + new
        states.append(content / whole)
    return torch.stack(states, 1)


def log_steps(log_a, log_v):
    h, states = log_v[:, 0], []
    for t in range(log_v.shape[1]):
        h = torch.logaddexp(log_a[:, t] + h, log_v[:, t]) if t else h
        states.append(h)
    return torch.stack(states, 1).exp()


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
    "exponential gates": (
        lambda x, y: stable_exponential_gates(x, y, x * 2),
        lambda x, y: exponential_gates(x, y, x * 2),
    ),
    "recurrence whose sum is shifted": (
        lambda x, y: shifted_scan(-F.softplus(x), log_positive(y), lambda whole: whole + 1.0),
        lambda x, y: scan(torch.sigmoid(-x), positive(y)),
    ),
    "recurrence whose sum begins at its maximum": (
        lambda x, y: shifted_scan(-F.softplus(x), log_positive(y), lambda whole: whole - whole.amax(1, keepdim=True)),
        lambda x, y: scan(torch.sigmoid(-x), positive(y)),
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
    "recurrence": (
        lambda x, y: log_scan(-F.softplus(x), F.logsigmoid(x) + log_positive(y)),
        lambda x, y: scan(torch.sigmoid(-x), torch.sigmoid(x) * positive(y)),
    ),
    "recurrence by Heinsen": (
        lambda x, y: heinsen(-F.softplus(x), F.logsigmoid(x) + log_positive(y)),
        lambda x, y: scan(torch.sigmoid(-x), torch.sigmoid(x) * positive(y)),
    ),
    "recurrence with a slice": (
        lambda x, y: sliced_scan(-F.softplus(x), F.logsigmoid(x) + log_positive(y)),
        lambda x, y: scan(torch.sigmoid(-x), torch.sigmoid(x) * positive(y)),
    ),
    "recurrence step by step": (
        lambda x, y: log_steps(-F.softplus(x), F.logsigmoid(x) + log_positive(y)),
        lambda x, y: scan(torch.sigmoid(-x), torch.sigmoid(x) * positive(y)),
    ),
    "recurrence whose gates are nearly closed": (
        lambda x, y: log_scan(-F.softplus(x + 30), F.logsigmoid(y - 32) + torch.where(MASK, -F.softplus(34 - y), C)),
        lambda x, y: scan(
            torch.sigmoid(-x - 30), torch.sigmoid(y - 32) * torch.where(MASK, torch.sigmoid(y - 34), C.exp())
        ),
    ),
    "recurrence with constant decays": (
        lambda x, y: log_scan(F.logsigmoid(C), log_positive(x)),
        lambda x, y: scan(torch.sigmoid(C), positive(x)),
    ),
    "recurrence without overflow": (
        lambda x, y: log_scan(1e4 * F.logsigmoid(C), log_positive(x)),
        lambda x, y: scan(torch.exp(1e4 * F.logsigmoid(C)), positive(x)),
    ),
}
LAWS = {
    **{name: in_logarithms for name, (in_logarithms, _) in SAME.items()},
    "stable recurrence": lambda x, y: stable_scan(-F.softplus(x), F.logsigmoid(x) + log_positive(y)),
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


def run(operation, x=X, y=Y):
    rows = Rows(nn.Module())
    opened = rows.open("feature", "x", x), rows.open("feature", "y", y)
    mode = HeldForward(rows)
    with torch.enable_grad(), mode:
        result = operation(*opened)
    return result, [row.leaf for row in rows.rows]


def weights_of(result):
    return torch.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).reshape(result.shape)


def contributions(operation):
    """Return what x and y contribute, and all else together."""
    result, leaves = run(operation)
    gradients = torch.autograd.grad((weights_of(result) * result).sum(), leaves, allow_unused=True)
    parts = [
        torch.zeros_like(leaf) if g is None else (g * leaf).detach() for g, leaf in zip(gradients, leaves, strict=True)
    ]
    return parts[0], parts[1], sum((each.sum() for each in parts[2:]), torch.zeros((), dtype=X.dtype))


@pytest.mark.parametrize("name", LAWS)
def test_value_linearity_and_sum(name):
    operation = LAWS[name]
    expected = operation(X.clone(), Y.clone())
    result, leaves = run(operation)
    torch.testing.assert_close(result.detach(), expected, rtol=1e-12, atol=1e-12)
    check_linear(result)
    whole = (weights_of(result) * result).sum()
    gradients = torch.autograd.grad(whole, leaves, allow_unused=True, create_graph=True)
    found = [(g, leaf) for g, leaf in zip(gradients, leaves, strict=True) if g is not None]
    for g, _ in found:  # a gradient that depends on no leaf: linear
        if g.requires_grad:
            second = torch.autograd.grad(g.sum(), leaves, allow_unused=True, retain_graph=True)
            assert not any(each is not None and bool(each.count_nonzero()) for each in second)
    total = sum((g * leaf).sum() for g, leaf in found)
    torch.testing.assert_close(total, whole.detach(), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", SAME)
def test_logarithms_credit_what_values_credit(name):
    in_logarithms, plain = SAME[name]
    for found, expected in zip(contributions(in_logarithms), contributions(plain), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_a_maximum_that_is_taken_out_changes_no_part_of_the_content():
    def recurrence(form):
        return lambda x, y: form(F.logsigmoid(C), F.logsigmoid(x) + log_positive(y))

    both = (contributions(recurrence(form)) for form in (stable_scan, log_scan))
    for found, expected in zip(*both, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_held_logarithms_would_credit_the_first_step_with_nothing():
    """The control: the first step's part is there, and as large as replacing the step shows."""

    def recurrence(y):
        return log_scan(F.logsigmoid(C), log_positive(y))[:, -1]

    _, part, _ = contributions(lambda x, y: recurrence(y))
    other = Y.clone()
    other[:, 0] = 0.0
    moved = recurrence(Y) - recurrence(other)
    torch.testing.assert_close(part[:, 0].sum(), (weights_of(moved) * moved).sum())
    assert float(part[:, 0].abs().sum()) > 1e-3
