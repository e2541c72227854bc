"""A gated recurrence h_t = a_t h_{t-1} + v_t by scans that multiply gates first has the account of the loop."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from outside_judge import ids

V, D = 30, 4
TEXT = ids(2, 7)


def loop(a, v):
    h, states = torch.zeros_like(v[:, 0]), []
    for t in range(v.shape[1]):
        h = a[:, t] * h + v[:, t]
        states.append(h)
    return torch.stack(states, 1)


def doubling(a, v):
    apart = 1
    while apart < v.shape[1]:
        v = a * F.pad(v, (0, 0, apart, 0))[:, : v.shape[1]] + v
        a = a * F.pad(a, (0, 0, apart, 0), value=1.0)[:, : v.shape[1]]
        apart *= 2
    return v


def joining(a, v):
    apart = 1
    while apart < v.shape[1]:
        v = torch.cat([v[:, :apart], a[:, apart:] * v[:, :-apart] + v[:, apart:]], 1)
        a = torch.cat([a[:, :apart], a[:, apart:] * a[:, :-apart]], 1)
        apart *= 2
    return v


def rolling(a, v):
    apart, place = 1, torch.arange(v.shape[1])[:, None]
    while apart < v.shape[1]:
        v = torch.addcmul(v, a, torch.where(place >= apart, v.roll(apart, 1), 0.0))
        a = a * a.roll(apart, 1).masked_fill(place < apart, 1.0)
        apart *= 2
    return v


def of_pairs(a, v):
    """Scan pairs, and then what stands between them: ``jax.lax.associative_scan``."""

    def scanned(a, v):
        if v.shape[1] < 2:
            return a, v
        later, earlier = slice(1, None, 2), slice(0, v.shape[1] - 1, 2)
        odd_a, odd_v = scanned(a[:, later] * a[:, earlier], a[:, later] * v[:, earlier] + v[:, later])
        count = (v.shape[1] - 1) // 2
        even_a = torch.cat([a[:, :1], a[:, 2::2] * odd_a[:, :count]], 1)
        even_v = torch.cat([v[:, :1], a[:, 2::2] * odd_v[:, :count] + v[:, 2::2]], 1)
        whole_a, whole_v = torch.zeros_like(a), torch.zeros_like(v)
        for whole, even, odd in ((whole_a, even_a, odd_a), (whole_v, even_v, odd_v)):
            whole[:, ::2] = even
            whole[:, 1::2] = odd
        return whole_a, whole_v

    return scanned(a, v)[1]


def in_chunks(a, v, size=3):
    """Run each chunk from nothing, and add what its gates keep of the state before."""
    state, states = torch.zeros_like(v[:, 0]), []
    for gates, written in zip(a.split(size, 1), v.split(size, 1), strict=True):
        kept, h, inside = torch.ones_like(state), torch.zeros_like(state), []
        for t in range(gates.shape[1]):
            kept, h = gates[:, t] * kept, gates[:, t] * h + written[:, t]
            inside.append(kept * state + h)
        state = inside[-1]
        states += inside
    return torch.stack(states, 1)


def in_complex_logarithms(a, v):
    """The scan of Heinsen for numbers of any sign."""
    logs = torch.complex(v.abs().log(), torch.pi * (v < 0).to(v))
    whole = a.log().cumsum(1)
    return (whole + torch.logcumsumexp(logs - whole, 1)).exp().real


def by_torch(a, v):
    from torch._higher_order_ops.associative_scan import associative_scan

    def then(first, last):
        return last[0] * first[0], last[0] * first[1] + last[1]

    return associative_scan(then, (a, v), 1, combine_mode="generic")[1]


def of_each_example(a, v):
    return torch.vmap(lambda *one: loop(*(each[None] for each in one))[0])(a, v)


def of_each_channel(a, v):
    return torch.vmap(lambda *one: loop(*one), in_dims=-1, out_dims=-1)(a, v)


def earlier_first(a, v):
    apart = 1
    while apart < v.shape[1]:
        v = torch.cat([v[:, :apart], a[:, apart:] * v[:, :-apart] + v[:, apart:]], 1)
        a = torch.cat([a[:, :apart], a[:, :-apart] * a[:, apart:]], 1)
        apart *= 2
    return v


class Gated(nn.Module):
    def __init__(self, scan):
        super().__init__()
        torch.manual_seed(0)
        self.gates, self.content, self.scan = nn.Embedding(V, D), nn.Embedding(V, D), scan
        self.forget, self.write, self.head = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, 3)
        self.double()

    def forward(self, of_gates, of_content):
        states = self.scan(self.forget(self.gates(of_gates)).sigmoid(), self.write(self.content(of_content)))
        return self.head(torch.tanh(states).mean(1))


def account(scan):
    found = unrolled.account(Gated(scan), TEXT, TEXT, target=1)
    assert found.closes
    assert not found.initial.any()
    return found


SCANS = [doubling, joining, rolling, of_pairs, by_torch, in_chunks, in_complex_logarithms]


@pytest.mark.parametrize("scan", [*SCANS, of_each_example, of_each_channel])
def test_a_scan_has_the_account_of_the_loop(scan):
    found, expected = account(scan), account(loop)
    for name, part in expected.texts.items():
        torch.testing.assert_close(found.texts[name], part, rtol=0, atol=1e-12)
        assert bool((part.abs() > 1e-6)[:, -3:].all())
    assert found.biases.keys() == expected.biases.keys()
    for name, part in expected.biases.items():
        torch.testing.assert_close(found.biases[name], part, rtol=0, atol=1e-12)
    assert not found.constants
    assert not expected.constants


def test_gates_that_are_multiplied_in_the_other_order_share_otherwise_among_themselves():
    """The control: contents are credited the same, and the gates together."""
    found, expected = account(earlier_first), account(loop)
    torch.testing.assert_close(found.texts["1"], expected.texts["1"], rtol=0, atol=1e-12)
    assert float((found.texts["0"] - expected.texts["0"]).abs().max()) > 1e-5
    both = [each.texts["0"].sum(1) + each.biases["forget.bias"] for each in (found, expected)]
    torch.testing.assert_close(*both, rtol=0, atol=1e-12)


@pytest.mark.parametrize("length", [2, 4, 5, 8])
def test_torchs_scan_has_the_account_of_the_loop_at_every_length(length):
    """Where a length is halved to two, torch's scan maps its function over an axis without entries."""
    text = TEXT[:, :1].repeat(1, length) + torch.arange(length)
    parts = [
        unrolled.account(Gated(scan), text % V, text % V, target=1).texts["0"]
        for scan in (by_torch, loop, earlier_first)
    ]
    torch.testing.assert_close(parts[0], parts[1], rtol=0, atol=1e-12)
    if length > 2:  # the control: gates that are multiplied in the other order share otherwise
        assert float((parts[2] - parts[1]).abs().max()) > 1e-6
