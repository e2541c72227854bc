"""Steps that users write themselves are opened like torch's own cells, by forward mode."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import RandomOperationError, UnrolledError, UnsupportedOperationError, UsageError

V, E, D, T = 11, 4, 5, 6
IDS = torch.tensor([[3, 1, 4, 1, 5, 9]])
EXACT = ["secant", "path", "operating"]


class OwnGRU(nn.Module):
    """A GRU by hand: forward(x, h) -> h."""

    def __init__(self, inputs, units):
        super().__init__()
        self.of_input, self.of_state = nn.Linear(inputs, 3 * units), nn.Linear(units, 3 * units)

    def forward(self, x, h):
        xr, xz, xn = self.of_input(x).chunk(3, dim=1)
        hr, hz, hn = self.of_state(h).chunk(3, dim=1)
        r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
        return (1 - z) * torch.tanh(xn + r * hn) + z * h


class OwnLSTM(nn.Module):
    """An LSTM by hand: forward(x, h, c) -> (h, c)."""

    def __init__(self, inputs, units):
        super().__init__()
        self.of_input, self.of_state = nn.Linear(inputs, 4 * units), nn.Linear(units, 4 * units)

    def forward(self, x, h, c):
        i, f, g, o = (self.of_input(x) + self.of_state(h)).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


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


class Loop(nn.Module):
    """The user's model: a Python loop over a cell."""

    def __init__(self, cell, call, start, read=lambda state: state):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.cell, self.head = nn.Embedding(V, E), cell, nn.Linear(D, 3)
        self.call, self.start, self.read = call, start, read
        self.double().eval()

    def forward(self, ids):
        state = self.start(ids)
        for t in range(ids.shape[1]):
            state = self.call(self.cell, self.embed(ids[:, t]), state)
        return self.head(self.read(state))


def zero(ids):
    return torch.zeros(len(ids), D, dtype=torch.float64)


def first(state):
    return state[0]


GRUS = {
    "state": lambda: Loop(OwnGRU(E, D), lambda cell, x, h: cell(x, h), zero),
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


def assert_same(found, expected, bound=1e-10):
    for one, other in (
        (found.triangle.contributions, expected.triangle.contributions),
        (found.triangle.scores, expected.triangle.scores),
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=bound)
    assert found.ledger.bias == pytest.approx(expected.ledger.bias, abs=bound)
    assert abs(found.ledger.remainder) < bound
    assert found.tokens == expected.tokens


@pytest.mark.parametrize("expansion", EXACT)
@pytest.mark.parametrize(("kind", "make"), [
    *((nn.GRUCell, make) for make in GRUS.values()),
    *((nn.LSTMCell, make) for make in LSTMS.values()),
], ids=[*GRUS, *LSTMS])  # fmt: skip
def test_a_cell_by_hand_has_the_n_grams_of_torchs_cell(kind, make, expansion):
    model = make()
    found = unrolled.explain(model, IDS, target=1, expansion=expansion)
    assert_same(found, unrolled.explain(of_torch(model, kind), IDS, target=1, expansion=expansion))


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

    points = ((torch.tensor([1.0]),) * 2) if operating else gauss(48)
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
    numpy = pytest.importorskip("numpy")
    points, weights = numpy.polynomial.legendre.leggauss(nodes)
    return torch.tensor((points + 1) / 2), torch.tensor(weights / 2)


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


class Stepped(OwnGRU):
    """A network of the user's own whose forward loops over its method ``step``."""

    def step(self, x, state):
        return OwnGRU.forward(self, x, state)

    def forward(self, xs, state=None):
        state = xs.new_zeros(len(xs), D) if state is None else state
        outputs = []
        for t in range(xs.shape[1]):
            state = self.step(xs[:, t], state)
            outputs.append(state)
        return torch.stack(outputs, dim=1), state


class Encoder(nn.Module):
    def __init__(self, rnn, pool=lambda found: found[1]):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head, self.pool = nn.Embedding(V, E), rnn, nn.Linear(D, 3), pool
        self.double().eval()

    def forward(self, ids):
        return self.head(self.pool(self.rnn(self.embed(ids))))


def stepped_and_torchs(pool, of_torchs):
    model = Encoder(Stepped(E, D), pool)
    same = Encoder(nn.GRU(E, D, batch_first=True), of_torchs)
    state = model.state_dict()
    for name, own in (("weight_ih_l0", "of_input.weight"), ("weight_hh_l0", "of_state.weight")):
        state[f"rnn.{name}"] = state.pop(f"rnn.{own}")
        state[f"rnn.{name.replace('weight', 'bias')}"] = state.pop(f"rnn.{own.replace('weight', 'bias')}")
    same.load_state_dict(state)
    return model, same


def test_a_method_step_that_the_networks_own_forward_calls():
    model, same = stepped_and_torchs(lambda found: found[0].mean(1), lambda found: found[0].mean(1))
    expected = unrolled.explain(same, IDS, target=1)
    for rnn in (None, "rnn", model.rnn):
        found = unrolled.explain(model, IDS, target=1, rnn=rnn)
        torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=1e-10)
        assert abs(found.ledger.remainder) < 1e-12
    assert "step" not in vars(model.rnn)
    assert "forward" not in vars(model.rnn)


def test_a_batch_is_explained_example_by_example():
    model = GRUS["state"]()
    batch = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]])
    for each, row in zip(unrolled.explain_batch(model, batch, target=1), batch, strict=True):
        assert_same(each, unrolled.explain(model, row[None], target=1), 1e-12)


def test_a_state_that_is_normalised_or_masked_between_the_steps():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.cell, self.head = nn.Embedding(V, E), OwnGRU(E, D), nn.Linear(D, 3)
            self.norm = nn.LayerNorm(D)
            self.double().eval()

        def forward(self, ids):
            h = zero(ids)
            for t in range(ids.shape[1]):
                mask = (ids[:, t] != 0).double()[:, None]
                h = mask * self.norm(self.cell(self.embed(ids[:, t]), h)) + (1 - mask) * h
            return self.head(h)

    found = unrolled.explain(Masked(), torch.tensor([[3, 1, 4, 0, 0]]), target=1)
    alone = unrolled.explain(Masked(), torch.tensor([[3, 1, 4]]), target=1)
    assert abs(found.ledger.remainder) < 1e-12
    assert [found.token_scores[i].item() for i in range(3)] == pytest.approx(alone.token_scores.tolist(), abs=1e-12)
    assert found.token_scores[3:].abs().max() < 1e-12


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


class Pondering(nn.Module):
    """A cell that lets another one read each input three times."""

    def __init__(self):
        super().__init__()
        self.inner = OwnGRU(E, D)

    def forward(self, x, h):
        for _ in range(3):
            h = self.inner(x, h)
        return h


def test_of_nested_steps_that_which_is_called_most_often_is_the_cell():
    model = Loop(Pondering(), lambda cell, x, h: cell(x, h), zero)
    found = unrolled.explain(model, IDS, target=1)
    assert len(found) == 3 * T
    assert abs(found.ledger.remainder) < 1e-12
    outer = unrolled.explain(model, IDS, target=1, rnn="cell")
    assert len(outer) == T
    assert abs(outer.ledger.remainder) < 1e-12


def test_a_part_of_the_input_may_be_a_context_of_attention():
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.head = nn.Embedding(V, E), nn.Linear(D, 3)
            self.encoder, self.cell = nn.GRU(E, D, batch_first=True), OwnGRU(E + D, D)
            self.double().eval()

        def forward(self, source, ids):
            memory, last = self.encoder(self.embed(source))
            h = last[0]
            for t in range(ids.shape[1]):
                weights = torch.softmax((memory @ h[:, :, None])[..., 0], dim=1)
                context = (weights[:, None] @ memory)[:, 0]
                h = self.cell(torch.cat([self.embed(ids[:, t]), context], dim=1), h)
            return self.head(h)

    model = Decoder()
    found = unrolled.explain(model, IDS[:, :4], IDS[:, 4:], target=1, rnn=("encoder", model.cell))
    torchs = Decoder()
    torchs.cell = nn.GRUCell(E + D, D).double()
    with torch.no_grad():
        for part, own in (("ih", model.cell.of_input), ("hh", model.cell.of_state)):
            getattr(torchs.cell, f"weight_{part}").copy_(own.weight)
            getattr(torchs.cell, f"bias_{part}").copy_(own.bias)
    expected = unrolled.explain(torchs, IDS[:, :4], IDS[:, 4:], target=1)
    assert abs(found.ledger.remainder) < 1e-12
    for one, other in zip(found.members, expected.members, strict=True):
        torch.testing.assert_close(one.triangle.contributions, other.triangle.contributions, rtol=0, atol=1e-10)
    only = unrolled.explain(model, IDS[:, :4], IDS[:, 4:], target=1, rnn="cell")
    assert abs(only.ledger.remainder) < 1e-12
    assert len(only) == 2


def test_one_example_without_a_batch():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.cell, self.head = MinimalUnbatched(), nn.Linear(D, 3)
            self.double().eval()

        def forward(self, xs):
            h = torch.zeros(D, dtype=torch.float64)
            for x in xs:
                h = self.cell(x, h)
            return self.head(h)

    class MinimalUnbatched(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.u = nn.Linear(E, D), nn.Linear(D, D)

        def forward(self, x, h):
            return torch.tanh(self.w(x) + self.u(h))

    found = unrolled.explain(Plain(), torch.randn(T, E, dtype=torch.float64), target=lambda out: out[1])
    assert abs(found.ledger.remainder) < 1e-12
    assert len(found) == T


class Advancing(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.head = Leaky(), nn.Linear(D, 3)
        self.double().eval()

    def forward(self, xs):
        level = torch.zeros(len(xs), D, dtype=torch.float64)
        for x in xs.unbind(1):
            level = self.cell.advance(x, level).clamp(-0.5, 0.5)
        return self.head(level)


class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.u = nn.Linear(E, D), nn.Linear(D, D)

    def advance(self, x, level):
        return 0.9 * level + 0.1 * torch.tanh(self.w(x) + self.u(level))


def test_an_adapter_names_the_method_and_the_state():
    xs = torch.randn(1, T, E, dtype=torch.float64)
    model = Advancing()
    with pytest.raises(UsageError, match="no recurrent network"):
        unrolled.explain(model, xs, target=1)
    for module in ("cell", model.cell):
        found = unrolled.explain(model, xs, target=1, rnn=unrolled.as_cell(module, method="advance", state="level"))
        assert abs(found.ledger.remainder) < 1e-12
        assert len(found) == T
    assert "advance" not in vars(model.cell)


@pytest.mark.parametrize(
    ("rnn", "message"),
    [
        (unrolled.as_cell("cell", method="advanced"), "without a method 'advanced'"),
        (unrolled.as_cell("cell", method="advance"), "not called with a state"),
        (unrolled.as_cell("cell", method="advance", state="stage"), "'stage'"),
        (unrolled.as_cell("sell", method="advance"), "did you mean 'cell'"),
        ("head", "no step that receives a state"),
        (3, "rnn is a int"),
    ],
)
def test_what_an_adapter_names_wrongly_is_told_in_one_line(rnn, message):
    with pytest.raises(UnrolledError, match=message) as told:
        unrolled.explain(Advancing(), torch.randn(1, T, E, dtype=torch.float64), target=1, rnn=rnn)
    assert "\n" not in str(told.value)


def test_an_adapter_of_wrong_types_is_refused():
    with pytest.raises(UsageError, match="the cell is a int"):
        unrolled.as_cell(3)
    with pytest.raises(UsageError, match="are names"):
        unrolled.as_cell("cell", state=(1, 2))


class Mixing(OwnGRU):
    def forward(self, x, h):
        return super().forward(x, h - h.mean(dim=0))


class Columns(nn.Module):
    """Written for one column vector."""

    def __init__(self, inputs, units):
        super().__init__()
        self.w, self.u = nn.Parameter(torch.randn(units, inputs)), nn.Parameter(torch.randn(units, units))

    def forward(self, x, h):
        return torch.tanh(self.w @ x[0] + self.u @ h[0])[None]


@pytest.mark.parametrize(("kind", "message"), [(Mixing, "changes another one"), (Columns, "row|fails")])
def test_a_step_that_mixes_the_rows_of_a_batch_is_refused(kind, message):
    model = Loop(kind(E, D), lambda cell, x, h: cell(x, h), zero)
    with pytest.raises(UnsupportedOperationError, match=message) as told:
        unrolled.explain(model, IDS, target=1)
    assert "\n" not in str(told.value)


def test_the_model_is_left_as_it_was():
    model = GRUS["state"]()
    model.train()
    before = dict(vars(model.cell))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    unrolled.explain(model, IDS, target=1)
    assert vars(model.cell).keys() == before.keys()
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_weights_that_change_between_the_steps_are_those_of_each_step():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.cell, self.head = nn.Embedding(V, E), OwnGRU(E, D), nn.Linear(D, 3)
            self.double().eval()

        def forward(self, ids):
            h, own = zero(ids), self.cell.of_state.weight
            for t in range(ids.shape[1]):
                self.cell.of_state.weight = nn.Parameter(own * (1 + t))
                h = self.cell(self.embed(ids[:, t]), h)
            self.cell.of_state.weight = own
            return self.head(h)

    for expansion in EXACT:
        found = unrolled.explain(Scaled(), IDS, target=1, expansion=expansion)
        assert found.residual < 1e-6
        assert abs(found.ledger.remainder) < 1e-6


def test_chunks_of_the_users_own_network_are_one_sequence():
    class Chunks(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.rnn, self.head = nn.Embedding(V, E), Stepped(E, D), nn.Linear(D, 3)
            self.double().eval()

        def forward(self, ids):
            state = None
            for part in ids.split(2, dim=1):
                _, state = self.rnn(self.embed(part), state)
            return self.head(state)

    model = Chunks()
    whole = Encoder(Stepped(E, D))
    whole.load_state_dict(model.state_dict())
    found = unrolled.explain(model, IDS, target=1)
    assert len(found) == T
    assert_same(found, unrolled.explain(whole, IDS, target=1), 1e-12)


def test_a_whole_network_is_no_step_though_it_takes_a_state():
    class Whole(OwnGRU):
        def forward(self, xs, state=None):
            h = xs.new_zeros(len(xs), D) if state is None else state
            for t in range(xs.shape[1]):
                h = OwnGRU.forward(self, xs[:, t], h)
            return h, h

    for rnn in (None, "rnn"):
        with pytest.raises(UsageError, match=r"no recurrent network|no step that receives"):
            unrolled.explain(Encoder(Whole(E, D)), IDS, target=1, rnn=rnn)


class Drawing(OwnGRU):
    def forward(self, x, h):
        return super().forward(x, torch.dropout(h, 0.3, train=True))


def test_a_step_that_draws_is_refused_as_that():
    model = Loop(Drawing(E, D), lambda cell, x, h: cell(x, h), zero)
    for seed in (None, 0):
        with pytest.raises(RandomOperationError, match=r"cell.forward of Drawing draws random numbers") as told:
            unrolled.explain(model, IDS, target=1, seed=seed)
        assert "\n" not in str(told.value)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_step_is_refused_as_that():
    model = Loop(torch.jit.script(OwnGRU(E, D)), lambda cell, x, h: cell(x, h), zero)
    with pytest.raises(UsageError, match=r"cell is scripted.*pass the Python module"):
        unrolled.explain(model, IDS, target=1)


class Clockwork(OwnGRU):
    """forward(x, h, t): an argument that is no tensor."""

    def forward(self, x, h, t):
        due = torch.tensor([t % (k + 1) == 0 for k in range(D)])
        return torch.where(due, super().forward(x, h), h)


class InPlace(OwnGRU):
    def forward(self, x, h, _):
        new = super().forward(x, h)
        new[:, 0] = h[:, 0] * 0.5
        return new.mul_(0.9)


class OfTokens(OwnGRU):
    """The embedding is inside the cell."""

    def __init__(self, inputs, units):
        super().__init__(inputs, units)
        self.embed = nn.Embedding(V, inputs)

    def forward(self, token, state):
        return super().forward(self.embed(token), state["h"]), {"h": super().forward(self.embed(token), state["h"])}


@pytest.mark.parametrize("expansion", EXACT)
@pytest.mark.parametrize("kind", [Clockwork, InPlace, OfTokens])
def test_what_else_a_step_may_do(kind, expansion):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.cell, self.head = nn.Embedding(V, E), kind(E, D), nn.Linear(D, 3)
            self.double().eval()

        def forward(self, ids):
            h, state = zero(ids), {"h": zero(ids)}
            for t in range(ids.shape[1]):
                if kind is OfTokens:
                    h, state = self.cell(ids[:, t], state)
                else:
                    h = self.cell(self.embed(ids[:, t]), h, t)
            return self.head(h)

    found = unrolled.explain(Model(), IDS, target=1, expansion=expansion)
    assert len(found) == T
    assert found.residual < 1e-9
    assert abs(found.ledger.remainder) < 1e-9
