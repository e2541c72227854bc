"""Cells that users write themselves are opened like torch's own, by forward mode."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from own_cells import EXACT, IDS, D, E, Loop, OwnGRU, OwnLSTM, T, V, assert_same, first, gru_in_a_loop, zero


class StateFirst(OwnGRU):
    def forward(self, state, x):
        return super().forward(x, state)


class WithOutput(OwnGRU):
    """forward(x, state) -> (output, state), where the output is the state."""

    def forward(self, x, state=None):
        h = super().forward(x, x.new_zeros(len(x), D) if state is None else state)
        return h, h


class Pair(OwnLSTM):
    """forward(x, (h, c)) -> (h, (h, c))."""

    def forward(self, x, hc):
        h, c = super().forward(x, *hc)
        return h, (h, c)


class Both(NamedTuple):
    h: torch.Tensor
    c: torch.Tensor


class Named(OwnLSTM):
    def forward(self, x, state):
        return Both(*super().forward(x, state.h, state.c))


GRUS = {
    "state": gru_in_a_loop,
    "state first": lambda: Loop(StateFirst(E, D), lambda cell, x, h: cell(h, x), zero),
    "by keyword": lambda: Loop(OwnGRU(E, D), lambda cell, x, h: cell(x=x, h=h), zero),
    "output and state": lambda: Loop(WithOutput(E, D), lambda cell, x, h: cell(x, h)[1], zero),
    "no state at first": lambda: Loop(WithOutput(E, D), lambda cell, x, h: cell(x, h)[1], lambda _: None),
}
LSTMS = {
    "h and c": lambda: Loop(OwnLSTM(E, D), lambda cell, x, s: cell(x, *s), lambda i: (zero(i), zero(i)), first),
    "a pair": lambda: Loop(Pair(E, D), lambda cell, x, s: cell(x, s)[1], lambda i: (zero(i), zero(i)), first),
    "a named pair": lambda: Loop(Named(E, D), lambda cell, x, s: cell(x, s), lambda i: Both(zero(i), zero(i)), first),
}


def of_torch(model, kind):
    """The same model with torch's cell."""
    cell = kind(E, D).double()
    with torch.no_grad():
        cell.weight_ih.copy_(model.cell.of_input.weight)
        cell.bias_ih.copy_(model.cell.of_input.bias)
        cell.weight_hh.copy_(model.cell.of_state.weight)
        cell.bias_hh.copy_(model.cell.of_state.bias)
    same = Loop(cell, lambda cell, x, s: cell(x, s), lambda _: None, first if kind is nn.LSTMCell else lambda s: s)
    same.load_state_dict({**same.state_dict(), **{k: v for k, v in model.state_dict().items() if "cell" not in k}})
    return same


@pytest.mark.quick_diagonal(3)  # quick: every cell, every expansion
@pytest.mark.parametrize("expansion", EXACT)
@pytest.mark.parametrize(("kind", "make"), [
    *((nn.GRUCell, make) for make in GRUS.values()),
    *((nn.LSTMCell, make) for make in LSTMS.values()),
], ids=[*GRUS, *LSTMS])  # fmt: skip
def test_a_cell_by_hand_has_the_n_grams_of_torchs_cell(kind, make, expansion):
    model = make()
    found = unrolled.explain(model, IDS, target=1, expansion=expansion)
    assert_same(found, unrolled.explain(of_torch(model, kind), IDS, target=1, expansion=expansion))


@pytest.mark.parametrize("name", GRUS)
def test_every_example_of_a_batch_has_its_own_tokens(name):
    ids = torch.cat([IDS, IDS.flip(1) + 1])
    for found, own in zip(unrolled.explain_batch(GRUS[name](), ids, target=1), ids.tolist(), strict=True):
        assert found.tokens == tuple(map(str, own))
        assert not found.notes


def mapped(**options):
    torch.manual_seed(0)
    own = lambda cell: lambda x, h: cell(x[None], h[None])[0]
    return Loop(OwnGRU(E, D), lambda cell, x, h: torch.vmap(own(cell), **options)(x, h), zero)


def test_a_cell_that_is_mapped_over_the_batch_is_that_cell():
    ids = torch.cat([IDS, IDS.flip(1)])
    model = mapped()
    assert [part.opens for part in unrolled.check(model, ids, target=1).parts] == [True, True]
    plain = gru_in_a_loop()
    plain.load_state_dict(model.state_dict())
    expected = unrolled.explain_batch(plain, ids, target=1)
    for one, other in zip(unrolled.explain_batch(model, ids, target=1), expected, strict=True):
        assert_same(one, other)


def test_a_map_that_may_draw_is_refused_in_one_line_and_check_says_so():
    model = mapped(randomness="different")
    with pytest.raises(unrolled.UsageError, match="none of its modules is one step"):
        unrolled.explain(model, IDS, target=1)
    *_, whole = unrolled.check(model, IDS, target=1).parts
    assert not whole.opens
    assert "a torch.vmap that draws random numbers" in whole.why


@pytest.mark.slow
def test_a_stack_of_two_is_torchs_stack():
    class Two(nn.Module):
        def __init__(self, low, top):
            super().__init__()
            self.embed, self.low, self.top, self.head = nn.Embedding(V, E), low, top, nn.Linear(D, 3)
            self.double().eval()

        def forward(self, ids):
            h, k = zero(ids), zero(ids)
            for t in range(ids.shape[1]):
                h = self.low(self.embed(ids[:, t]), h)
                k = self.top(h, k)
            return self.head(k)

    torch.manual_seed(0)
    own = Two(OwnGRU(E, D), OwnGRU(D, D))
    torchs = Two(nn.GRUCell(E, D), nn.GRUCell(D, D))
    names = {"of_input.weight": "weight_ih", "of_input.bias": "bias_ih", "of_state.weight": "weight_hh"}
    names["of_state.bias"] = "bias_hh"
    renamed = {}
    for name, value in own.state_dict().items():
        place, _, rest = name.partition(".")
        renamed[f"{place}.{names.get(rest, rest)}"] = value
    torchs.load_state_dict(renamed)
    for expansion in EXACT:
        found = unrolled.explain(own, IDS, target=1, expansion=expansion)
        assert len(found) == T
        assert_same(found, unrolled.explain(torchs, IDS, target=1, expansion=expansion))


class NormedLSTM(OwnLSTM):
    """Layer norm of the products and of the cell state."""

    def __init__(self, inputs, units):
        super().__init__(inputs, units)
        self.norm_x, self.norm_h, self.norm_c = nn.LayerNorm(4 * units), nn.LayerNorm(4 * units), nn.LayerNorm(units)
        for norm in (self.norm_x, self.norm_h, self.norm_c):
            nn.init.normal_(norm.weight, 1, 0.3)
            nn.init.normal_(norm.bias, 0, 0.3)

    def forward(self, x, state):
        h, c = state
        i, f, g, o = (self.norm_x(self.of_input(x)) + self.norm_h(self.of_state(h))).chunk(4, dim=-1)
        c = self.norm_c(torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g))
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, (h, c)


class Peephole(OwnLSTM):
    """The gates read the cell state."""

    def __init__(self, inputs, units):
        super().__init__(inputs, units)
        self.peep = nn.Parameter(torch.randn(3, units))

    def forward(self, x, state):
        h, c = state
        i, f, g, o = (self.of_input(x) + self.of_state(h)).chunk(4, dim=-1)
        i, f = torch.sigmoid(i + self.peep[0] * c), torch.sigmoid(f + self.peep[1] * c)
        c = f * c + i * torch.tanh(g)
        h = torch.sigmoid(o + self.peep[2] * c) * torch.tanh(c)
        return h, (h, c)


class IndRNN(nn.Module):
    """Every unit reads itself alone."""

    def __init__(self, inputs, units):
        super().__init__()
        self.of_input, self.own = nn.Linear(inputs, units), nn.Parameter(torch.randn(units))

    def forward(self, x, h):
        return torch.tanh(self.of_input(x) + self.own * h)


class MinimalGated(nn.Module):
    def __init__(self, inputs, units):
        super().__init__()
        self.gate, self.new = nn.Linear(inputs + units, units), nn.Linear(inputs + units, units)

    def forward(self, x, h):
        f = torch.sigmoid(self.gate(torch.cat([x, h], dim=1)))
        return torch.lerp(h, torch.tanh(self.new(torch.cat([x, f * h], dim=1))), f)


class WithReadout(nn.Module):
    """forward(x, h) -> (output, h), where the output is not the state; weights in matrices, no module of torch."""

    def __init__(self, inputs, units):
        super().__init__()
        self.w, self.u, self.v = (nn.Parameter(torch.randn(n, units) / 2) for n in (inputs, units, units))

    def forward(self, x, h):
        h = torch.tanh(x @ self.w + torch.addmm(self.u.sum(0), h, self.u))
        return torch.relu(h @ self.v), h


def two_zeros(ids):
    return zero(ids), zero(ids)


CELLS = {
    "layer norm": (NormedLSTM, lambda cell, x, s: cell(x, s)[1], two_zeros, first),
    "peephole": (Peephole, lambda cell, x, s: cell(x, s)[1], two_zeros, first),
    "independent": (IndRNN, lambda cell, x, h: cell(x, h), zero, lambda h: h),
    "minimal gated": (MinimalGated, lambda cell, x, h: cell(x, h), zero, lambda h: h),
    "output": (WithReadout, lambda cell, x, s: cell(x, s[1]), two_zeros, first),
}


def reference(model, call, start, read, operating):
    """The contributions of all n-grams of the last output, by a plain loop with autograd's Jacobians."""
    state = start(IDS)
    parts = state if isinstance(state, tuple) else (state,)
    size = sum(part.shape[1] for part in parts)

    def step(x, flat):
        split = flat[None].split(D, dim=1)
        new = call(model.cell, x[None], split if isinstance(state, tuple) else split[0])
        return torch.cat(new if isinstance(new, tuple) else (new,), dim=1)[0]

    points = ((torch.tensor([1.0]),) * 2) if operating else gauss(20)
    vectors, current = [], torch.zeros(size, dtype=torch.float64)
    for x in model.embed(IDS[0]).detach():
        jacobian = sum(
            weight * torch.autograd.functional.jacobian(lambda s: step(x, s), alpha * current)  # noqa: B023  # called at once
            for alpha, weight in zip(*points, strict=True)
        )
        after = step(x, current).detach()
        vectors = [jacobian @ v for v in vectors] + [after - jacobian @ current]
        current = after
    readout = torch.autograd.functional.jacobian(
        lambda s: model.head(read(s[None].split(D, dim=1) if isinstance(state, tuple) else s[None]))[0, 1], current
    )
    return [float(readout @ v) for v in vectors]


def gauss(nodes):
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return torch.tensor((points + 1) / 2), torch.tensor(weights / 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CELLS))
def test_other_cells_have_the_n_grams_of_a_plain_loop(name):
    make, call, start, read = CELLS[name]
    torch.manual_seed(1)
    model = Loop(make(E, D), call, start, read)
    for expansion in ("operating", "path"):
        found = unrolled.explain(model, IDS, target=1, expansion=expansion)
        expected = reference(model, call, start, read, expansion == "operating")
        bound = 1e-11 if expansion == "operating" or name != "output" else 1e-4
        assert [found.contribution(i, T) for i in range(T)] == pytest.approx(expected, abs=max(bound, 1e-7))
        assert not found.notes or name == "output"


@pytest.mark.parametrize("name", list(CELLS))
def test_secant_is_in_closed_form_and_exact_and_zero_is_not(name):
    make, call, start, read = CELLS[name]
    torch.manual_seed(1)
    model = Loop(make(E, D), call, start, read)
    found = unrolled.explain(model, IDS, target=1)
    assert abs(found.ledger.remainder) < 1e-12
    assert found.exact
    assert not any("quadrature" in note for note in found.notes)
    alone = unrolled.explain(model, IDS[:, -1:], target=1, rnn="cell")  # a unigram has its context-free meaning
    assert found.contribution(T - 1, T) == pytest.approx(alone.contribution(0, 1), abs=1e-12)
    assert abs(unrolled.explain(model, IDS, target=1, expansion="zero").ledger.remainder) > 1e-3


class Zoneout(nn.Module):
    """A cell around another one, with a module of weights that reads the old and the new state."""

    def __init__(self):
        super().__init__()
        self.inner, self.mix = OwnGRU(E, D), Mix()

    def forward(self, x, h):
        return self.mix(h, self.inner(x, h))


class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        self.share = nn.Parameter(torch.full((D,), 0.3))

    def forward(self, old, new):
        return self.share * old + (1 - self.share) * new


def test_a_cell_of_modules_is_one_cell():
    model = Loop(Zoneout(), lambda cell, x, h: cell(x, h), zero)
    found = unrolled.explain(model, IDS, target=1, expansion="operating")
    expected = reference(model, lambda cell, x, h: cell(x, h), zero, lambda h: h, operating=True)
    assert [found.contribution(i, T) for i in range(T)] == pytest.approx(expected, abs=1e-11)
