# ruff: noqa: ARG005  # every operation takes x and y
"""Recurrences that a model computes in logarithms credit what the recurrence step by step credits."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from logarithm_zoo import (
    MASK,
    C,
    Y,
    assert_same_contributions,
    assert_value_linearity_and_sum,
    contributions,
    log_positive,
    log_signed,
    positive,
    weights_of,
)


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


SAME = {
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
    "recurrence in complex numbers": (
        lambda x, y: heinsen(F.logsigmoid(x), log_signed(y)).real,
        lambda x, y: scan(torch.sigmoid(x), y),
    ),
    "recurrence with complex decays": (
        lambda x, y: log_scan((torch.sigmoid(x) + 0j).log(), (y + 0j).log()).real,
        lambda x, y: scan(torch.sigmoid(x), y),
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
}


@pytest.mark.parametrize("name", LAWS)
def test_value_linearity_and_sum(name):
    assert_value_linearity_and_sum(LAWS[name])


@pytest.mark.parametrize("name", SAME)
def test_logarithms_credit_what_values_credit(name):
    assert_same_contributions(*SAME[name])


def test_a_maximum_that_is_taken_out_changes_no_part_of_the_content():
    def recurrence(form):
        return lambda x, y: form(F.logsigmoid(C), F.logsigmoid(x) + log_positive(y))

    assert_same_contributions(recurrence(stable_scan), recurrence(log_scan))


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
