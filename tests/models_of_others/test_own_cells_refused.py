"""Cells that must be named, and steps that are refused by name."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from own_cells import IDS, D, E, Encoder, Loop, OwnGRU, T, zero
from unrolled.errors import RandomOperationError, UnknownNameError, UnrolledError, UnsupportedOperationError, UsageError


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
        (3, "rnn is an int"),
    ],
)
def test_what_an_adapter_names_wrongly_is_told_in_one_line(rnn, message):
    with pytest.raises(UnrolledError, match=message) as told:
        unrolled.explain(Advancing(), torch.randn(1, T, E, dtype=torch.float64), target=1, rnn=rnn)
    assert "\n" not in str(told.value)


def test_a_method_in_place_of_a_module_is_told_how_it_is_named():
    xs = torch.randn(1, T, E, dtype=torch.float64)
    with pytest.raises(
        UsageError, match=r"a method of Leaky and no module; .*as_cell\('cell', method='advance', state="
    ):
        unrolled.explain(Advancing(), xs, target=1, rnn="cell.advance")
    named = unrolled.as_cell("cell", method="advance", state="level")
    assert unrolled.explain(Advancing(), xs, target=1, rnn=named).closes
    with pytest.raises(UnknownNameError, match=r"unknown recurrent network 'cell\.advances'"):  # no method
        unrolled.explain(Advancing(), xs, target=1, rnn="cell.advances")


def test_an_adapter_of_wrong_types_is_refused():
    with pytest.raises(UsageError, match="the cell is an int"):
        unrolled.as_cell(3)
    with pytest.raises(UsageError, match="are names"):
        unrolled.as_cell("cell", state=(1, 2))


class Mixing(OwnGRU):
    def forward(self, x, h):
        return super().forward(x, h - h.mean(dim=0))


class TwoRows(nn.Module):
    """Written for a batch of two."""

    def __init__(self, inputs, units):
        super().__init__()
        self.w, self.u = nn.Parameter(torch.randn(units, inputs)), nn.Parameter(torch.randn(units, units))

    def forward(self, x, h):
        return torch.tanh(x.reshape(2, -1) @ self.w.T + h.reshape(2, -1) @ self.u.T)


@pytest.mark.parametrize(("kind", "message"), [(Mixing, "changes another one"), (TwoRows, "on a batch of 6 rows")])
def test_a_step_that_mixes_the_rows_of_a_batch_is_refused(kind, message):
    model = Loop(kind(E, D), lambda cell, x, h: cell(x, h), zero)
    with pytest.raises(UnsupportedOperationError, match=message) as told:
        unrolled.explain_batch(model, torch.cat([IDS, IDS + 1]), target=1)
    assert "\n" not in str(told.value)


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
@pytest.mark.parametrize("kind", ["scripted", "traced"])
@pytest.mark.parametrize("rnn", [None, "cell"])
def test_a_step_of_torchscript_is_refused_as_that(kind, rnn):
    cell = OwnGRU(E, D).double()
    given = torch.ones(len(IDS), E, dtype=torch.float64), torch.ones(len(IDS), D, dtype=torch.float64)
    made = torch.jit.script(cell) if kind == "scripted" else torch.jit.trace(cell, given)
    model = Loop(made, lambda cell, x, h: cell(x, h), zero)
    with pytest.raises(UsageError, match=rf"cell is {kind}.*put the Python module that it was made of in its place"):
        unrolled.explain(model, IDS, target=1, rnn=rnn)
    model.cell = cell  # what the refusal asks for
    assert abs(unrolled.explain_batch(model, IDS, target=1, rnn=rnn)[0].ledger.remainder) < 1e-12


def scripted_and_plain():
    """A step as a class of TorchScript, and the same class without it: what the refusal asks for."""

    def define(base, method):
        class Minimal(base):
            def __init__(self):
                super().__init__()
                torch.manual_seed(0)
                self.w = nn.Parameter(torch.randn(E + D, D, dtype=torch.float64))

            @method
            def forward(self, x, h):
                return torch.tanh(torch.cat([x, h], 1) @ self.w)

        return Minimal()

    return define(torch.jit.ScriptModule, torch.jit.script_method), define(nn.Module, lambda method: method)


@pytest.mark.parametrize("rnn", [None, "cell", unrolled.as_cell("cell"), unrolled.as_cell("cell", state="h")])
def test_a_class_of_torchscript_is_refused_with_advice_that_helps(rnn):
    scripted, plain = (Loop(cell, lambda cell, x, h: cell(x, h), zero) for cell in scripted_and_plain())
    advice = r"is scripted.*derive Minimal from torch\.nn\.Module, without torch\.jit\.script_method"
    with pytest.raises(UsageError, match=advice):
        unrolled.explain(scripted, IDS[:1], target=1, rnn=rnn)
    with pytest.raises(UnsupportedOperationError, match=r"is a scripted module.*derive Minimal"):
        unrolled.account(scripted, IDS[:1], target=1)
    plain.load_state_dict(scripted.state_dict())
    found = unrolled.explain(plain, IDS[:1], target=1, rnn=rnn)
    torch.testing.assert_close(found.ledger.logit, float(scripted(IDS[:1])[0, 1].detach()))
    assert abs(found.ledger.remainder) < 1e-12


class ExamplesLast(nn.Module):
    """A step of several layers, whose state has the examples last: (layers, units, examples)."""

    def __init__(self, kind, layers):
        super().__init__()
        self.cells = nn.ModuleList(kind(E if layer == 0 else D, D) for layer in range(layers))

    def forward(self, x, state):
        states = []
        for cell, h in zip(self.cells, state, strict=True):
            x = cell(x, h.T)
            states.append(x.T)
        return x, torch.stack(states)


class Layers(nn.Module):
    def __init__(self, kind, layers):
        super().__init__()
        torch.manual_seed(0)
        self.step, self.head = ExamplesLast(kind, layers), nn.Linear(D, 3)
        self.double().eval()

    def forward(self, xs):
        state = torch.zeros(len(self.step.cells), D, len(xs), dtype=torch.float64)
        for x in xs.unbind(1):
            h, state = self.step(x, state)
        return self.head(h)


@pytest.mark.parametrize(
    ("kind", "layers", "named"),
    [
        (OwnGRU, 2, ["step.cells.0", "step.cells.1"]),
        (nn.GRUCell, 2, ["step.cells.0", "step.cells.1"]),
    ],
)
def test_a_step_that_does_not_open_names_those_inside_it_which_do(kind, layers, named):
    xs, model = torch.randn(1, T, E, dtype=torch.float64), Layers(kind, layers)
    with pytest.raises(UnsupportedOperationError) as told:
        unrolled.explain(model, xs, target=1, rnn=unrolled.as_cell("step"))
    assert str(told.value).endswith(f"; or open the steps inside it: rnn={named!r}")
    found = unrolled.explain(model, xs, target=1, rnn=named)
    assert abs(found.ledger.remainder) < 1e-12
    assert len(found) == T


def test_a_state_with_examples_last_opens_for_one_example_and_names_the_step_inside_for_several():
    xs, model = torch.randn(2, T, E, dtype=torch.float64), Layers(OwnGRU, 1)
    with pytest.raises(UnsupportedOperationError, match=r"or open the steps inside it: rnn='step.cells.0'$"):
        unrolled.explain_batch(model, xs, target=1, rnn=unrolled.as_cell("step"))
    found, inside = (
        unrolled.explain(model, xs[:1], target=1, rnn=rnn) for rnn in (unrolled.as_cell("step"), "step.cells.0")
    )
    torch.testing.assert_close(found.triangle.contributions, inside.triangle.contributions, rtol=0, atol=1e-12)
    assert abs(found.ledger.remainder) < 1e-12
