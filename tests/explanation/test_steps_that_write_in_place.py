"""A step of a user's own that writes the next state into the tensors that it receives, as caches of Mamba are."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import unrolled
from unrolled.errors import ParityError, UnsupportedOperationError

V, D, WINDOW = 11, 3, 2
IDS = torch.tensor([[3, 1, 4], [9, 2, 6]])


class Cell(nn.Module):
    """A causal convolution over the last inputs, then a gated recurrence: a state of two tensors."""

    def __init__(self, write):
        super().__init__()
        self.write, self.taps = write, nn.Parameter(torch.randn(D, WINDOW))
        self.of_input, self.of_state = nn.Linear(D, 2 * D), nn.Linear(D, 2 * D)

    def forward(self, x: Tensor, window: Tensor, state: Tensor):
        later = torch.cat((window[..., 1:], x[..., None]), dim=-1)
        new, gate = (self.of_input((later * self.taps).sum(-1)) + self.of_state(state)).chunk(2, dim=-1)
        return self.write(window, later), self.write(state, gate.sigmoid() * state + new.tanh())


class Reader(nn.Module):
    """Runs the step over all tokens, and reads what it returns or what it has written."""

    def __init__(self, write, reads_results=True):
        super().__init__()
        torch.manual_seed(2)
        self.reads_results = reads_results
        self.embed, self.cell, self.head = nn.Embedding(V, D), Cell(write), nn.Linear(D, 3)

    def forward(self, ids: Tensor) -> Tensor:
        read = self.embed(ids)
        window, state = read.new_zeros(len(ids), D, WINDOW), read.new_zeros(len(ids), D)
        for x in read.unbind(1):
            results = self.cell(x, window, state)
            if self.reads_results:
                window, state = results
        return self.head(state)


def new(_: Tensor, value: Tensor) -> Tensor:
    return value


WAYS = {
    "copy_": lambda old, value: old.copy_(value),
    "a slice": lambda old, value: old.__setitem__(slice(None), value) or old,
    "products and sums": lambda old, value: old.mul_(0.0).add_(value),
}


@pytest.mark.parametrize("reads_results", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_its_n_grams_are_those_of_a_step_that_returns_new_tensors(way, reads_results):
    pure, written = Reader(new).double(), Reader(WAYS[way], reads_results).double()
    torch.testing.assert_close(written(IDS), pure(IDS))
    expected = unrolled.explain_batch(pure, IDS, target=1)
    found = unrolled.explain_batch(written, IDS, target=1)
    for one, other in zip(found, expected, strict=True):
        assert one.tokens == other.tokens
        assert abs(one.ledger.remainder) < 1e-9
        torch.testing.assert_close(one.token_scores, other.token_scores)
        pairs = zip(one.top(5), other.top(5), strict=True)
        assert all(ours.contribution == pytest.approx(theirs.contribution) for ours, theirs in pairs)


def test_a_model_that_does_not_read_what_is_written_has_other_n_grams():
    read, unread = (unrolled.explain(Reader(write).double(), IDS[:1], target=1) for write in (new, lambda _, v: 0 * v))
    assert not torch.allclose(read.token_scores, unread.token_scores)


def test_complex_states_are_written_as_well():
    class Rotation(nn.Module):
        def __init__(self, write):
            super().__init__()
            self.write, self.angle = write, nn.Parameter(torch.randn(D))

        def forward(self, x, state):
            return self.write(state, 0.9 * torch.polar(torch.ones_like(self.angle), self.angle) * state + x)

    class Model(nn.Module):
        def __init__(self, write):
            super().__init__()
            torch.manual_seed(3)
            self.embed, self.cell, self.head = nn.Embedding(V, D), Rotation(write), nn.Linear(D, 3)

        def forward(self, ids):
            state = torch.zeros(len(ids), D, dtype=torch.complex128)
            for x in self.embed(ids).unbind(1):
                state = self.cell(x, state)
            return self.head(state.real)

    found, expected = (unrolled.explain(Model(write).double(), IDS[:1], target=1) for write in (WAYS["copy_"], new))
    torch.testing.assert_close(found.token_scores, expected.token_scores)


def test_a_step_that_changes_what_it_does_not_return_is_refused_by_the_name_of_the_argument():
    model = Reader(lambda old, value: 2 * old.copy_(value)).double()
    with pytest.raises(UnsupportedOperationError, match=r"cell\.forward .*changes window in place and returns other"):
        unrolled.explain(model, IDS[:1], target=1)


def test_a_step_that_writes_the_numbers_that_a_state_has_is_not_refused():
    found, expected = (
        unrolled.explain(Reader(write).double(), IDS[:1], target=1)
        for write in (lambda old, value: value + 0.1 * old.clamp_(-9.0, 9.0), lambda old, value: value + 0.1 * old)
    )
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions)
    assert abs(found.ledger.remainder) < 1e-9


class Activated(nn.Module):
    """Its step takes an activation of the input, in place or anew; the model may read its input once more."""

    class Step(nn.Module):
        def __init__(self, inplace):
            super().__init__()
            self.a, self.b, self.inplace = nn.Linear(D, D), nn.Linear(D, D), inplace

        def forward(self, x, h):
            return torch.tanh(self.a(F.relu(x, inplace=self.inplace)) + self.b(h))

    def __init__(self, inplace, reads_again=False):
        super().__init__()
        torch.manual_seed(7)
        self.embed, self.head, self.cell = nn.Embedding(V, D), nn.Linear(D, 3), self.Step(inplace)
        self.reads_again = reads_again

    def forward(self, ids):
        state, inputs = torch.zeros(len(ids), D, dtype=torch.float64), 0.0
        for x in self.embed(ids).unbind(1):
            x = x.clone()  # as a view of several it may not be changed
            state = self.cell(x, state)
            inputs = inputs + x if self.reads_again else inputs
        return self.head(state + inputs)


@pytest.mark.parametrize("expansion", ["secant", "operating", "shares"])
def test_an_input_that_is_activated_in_place_has_the_n_grams_of_one_that_is_not(expansion):
    found, expected = (
        unrolled.explain(Activated(each).double(), IDS[:1], target=1, expansion=expansion) for each in (True, False)
    )
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions)
    assert abs(found.ledger.remainder) < 1e-9
    assert found.notes == expected.notes


@pytest.mark.parametrize("expansion", ["secant", "operating", "shares"])
def test_an_input_that_is_changed_in_place_and_read_again_is_refused(expansion):
    with pytest.raises(ParityError, match="read an input again that a step changes in place"):
        unrolled.explain(Activated(True, reads_again=True).double(), IDS[:1], target=1, expansion=expansion)


COUNTS = {
    "a number": lambda t, _: torch.tensor(0.3 * t, dtype=torch.float64),
    "a whole number": lambda t, _: torch.tensor(t),
    "a whole number for each example": lambda t, ids: torch.full((len(ids), 1), t),
    "a number for each unit": lambda t, _: torch.arange(3.0, dtype=torch.float64) + t,
}


class Counted(nn.Module):
    """Its step raises what it receives beside its input and state, in place or anew."""

    class Step(nn.Module):
        def __init__(self, in_place):
            super().__init__()
            self.a, self.b, self.in_place = nn.Linear(D, D), nn.Linear(D, D), in_place

        def forward(self, x, h, count):
            raised = count.add_(1) if self.in_place else count + 1
            return torch.tanh(self.a(x) + self.b(h) * raised)

    def __init__(self, count, in_place):
        super().__init__()
        torch.manual_seed(7)
        self.embed, self.head, self.cell = nn.Embedding(V, D), nn.Linear(D, 3), self.Step(in_place)
        self.count = count

    def forward(self, ids):
        state = torch.zeros(len(ids), D, dtype=torch.float64)
        for t, x in enumerate(self.embed(ids).unbind(1)):
            state = self.cell(x, state, self.count(t, ids))
        return self.head(state)


@pytest.mark.parametrize("expansion", ["secant", "operating", "shares"])
@pytest.mark.parametrize("kind", COUNTS)
def test_what_a_step_receives_beside_its_input_may_be_written_as_well(kind, expansion):
    found, expected = (
        unrolled.explain(Counted(COUNTS[kind], each).double(), IDS[:1], target=1, expansion=expansion)
        for each in (True, False)
    )
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions)
    assert abs(found.ledger.remainder) < 1e-9
    assert found.notes == expected.notes


class Keeps(nn.Module):
    """Its step keeps its states in rows of its caller's, in place."""

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(D, D), nn.Linear(D, D)

        def forward(self, x, h, rows, t):
            h = torch.tanh(self.a(x) + self.b(h))
            rows[:, t] = h
            return h

    def __init__(self, read):
        super().__init__()
        torch.manual_seed(7)
        self.embed, self.head, self.cell, self.read = nn.Embedding(V, D), nn.Linear(D, 3), self.Step(), read

    def forward(self, ids):
        rows = torch.zeros(*ids.shape, D, dtype=torch.float64)
        state = torch.zeros(len(ids), D, dtype=torch.float64)
        for t, x in enumerate(self.embed(ids).unbind(1)):
            state = self.cell(x, state, rows, t)
        return self.head(self.read(state, rows))


READS = {
    "beside the state": (lambda state, rows: state + rows.mean(1), ParityError),
    "alone": (lambda _, rows: rows[:, -1], UnsupportedOperationError),
}


@pytest.mark.parametrize("way", READS)
def test_what_a_step_changes_and_the_model_reads_is_named_where_that_fails(way):
    read, error = READS[way]
    with pytest.raises(error, match=r"^cell\.forward changes rows in place and does not return it; if the model reads"):
        unrolled.explain(Keeps(read).double(), IDS[:1], target=1)


def test_what_a_step_changes_and_nobody_reads_is_no_reason_to_refuse_it():
    found = unrolled.explain(Keeps(lambda state, _: state).double(), IDS[:1], target=1)
    assert abs(found.ledger.remainder) < 1e-9
    assert not found.notes


class Simple(nn.Module):
    """A step of one formula."""

    def __init__(self, formula):
        super().__init__()
        torch.manual_seed(7)
        self.embed, self.head = nn.Embedding(V, D), nn.Linear(D, 3)
        self.cell = self.Step(formula)

    class Step(nn.Module):
        def __init__(self, formula):
            super().__init__()
            self.a, self.b, self.formula = nn.Linear(D, D), nn.Linear(D, D), formula

        def forward(self, x, h):
            return self.formula(self.a(x), self.b(h), h)

    def forward(self, ids):
        state = torch.zeros(len(ids), D, dtype=torch.float64)
        for x in self.embed(ids).unbind(1):
            state = self.cell(x, state)
        return self.head(state)


FORMULAS = {
    "exp_": (
        lambda a, b, h: (a - b).sigmoid().neg_().exp_() * h + b.tanh(),
        lambda a, b, h: (-(a - b).sigmoid()).exp() * h + b.tanh(),
    ),
    "tanh_": (lambda a, b, h: (a + b).tanh_() * h + a, lambda a, b, h: (a + b).tanh() * h + a),
    "add_ and tanh_": (
        lambda a, b, h: (a + (b + 1.0).sigmoid_()).add_(h).tanh_(),
        lambda a, b, h: (a + (b + 1.0).sigmoid() + h).tanh(),
    ),
    "the sum alone": (lambda a, b, _: (b + 1.0).tanh_() * b + a, lambda a, b, _: (b + 1.0).tanh() * b + a),
    "a power": (
        lambda a, b, h: a + (b + h).abs() ** torch.full((1,), 1.5, dtype=torch.float64),
        lambda a, b, h: a + (b + h).abs() ** 1.5,
    ),
}


@pytest.mark.parametrize("expansion", ["secant", "shares"])
@pytest.mark.parametrize("name", FORMULAS)
def test_what_a_step_computes_in_place_is_what_it_computes_anew(name, expansion):
    found, expected = (
        unrolled.explain(Simple(each).double(), IDS[:1], target=1, expansion=expansion) for each in FORMULAS[name]
    )
    torch.testing.assert_close(found.token_scores, expected.token_scores)
    assert found.token_scores.abs().max() > 1e-3


def test_a_step_that_writes_by_out_is_refused_by_the_name_of_the_operation():
    model = Simple(lambda a, b, h: torch.tanh(a + b, out=torch.empty_like(h))).double()
    with pytest.raises(UnsupportedOperationError, match=r"writes the result of tanh by out=; leave out= away"):
        unrolled.explain(model, IDS[:1], target=1, expansion="shares")
    assert unrolled.account(model, IDS[:1], target=1).closes  # which follows it
