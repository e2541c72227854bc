"""What numbers contribute past the recurrent network is in the constants, and a note says so."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import StrictError

SERIES = torch.randn(1, 6, 4, generator=torch.Generator().manual_seed(0)).double() + 10


class Skips(nn.Module):
    """Adds the mean of the numbers to the last state, by a factor."""

    def __init__(self, factor):
        super().__init__()
        torch.manual_seed(0)
        self.factor, self.rnn, self.head = factor, nn.LSTM(4, 4, batch_first=True), nn.Linear(4, 2)
        self.double()

    def forward(self, series):
        return self.head(self.rnn(series)[0][:, -1] + self.factor * series.mean(1))


def test_a_note_says_that_constants_hold_numbers_read_past_the_network():
    model = Skips(1.0)
    found = unrolled.explain(model, SERIES, target=1)
    past = (model.head.weight[1] @ SERIES.mean(1)[0]).item()
    assert found.biases["constants"] == pytest.approx(past)
    (note,) = [note for note in found.notes if "read" in note and "constants" in note]
    assert "unrolled.account says what each contributes" in note
    with pytest.raises(StrictError, match="past its recurrent network"):
        unrolled.explain(model, SERIES, target=1, strict=True)
    assert "constants" not in unrolled.account(model, SERIES, target=1).constants


def detached(series):
    return series.mean(1).detach()


def without_gradients(series):
    with torch.no_grad():
        return series.mean(1)


@torch.no_grad()
def decorated(series):
    return series.mean(1)


def as_data(series):
    return series.mean(1).data


@pytest.mark.parametrize("read", [detached, without_gradients, decorated, as_data])
def test_numbers_that_the_model_detaches_are_noted_as_well(read):
    class Normalises(Skips):
        def forward(self, series):
            shift = read(series)
            return self.head(self.rnn(series - shift[:, None])[0][:, -1] + self.factor * shift)

    assert any("past its recurrent network" in note for note in unrolled.explain(Normalises(1.0), SERIES).notes)
    assert not any("past its recurrent network" in note for note in unrolled.explain(Normalises(0.0), SERIES).notes)
    assert torch.is_grad_enabled()


def test_where_all_numbers_go_through_the_network_there_is_no_such_note():
    assert not unrolled.explain(Skips(0.0), SERIES, target=1).notes


class Results(Skips):
    """Returns its results in a tuple or a dictionary, as most published models do."""

    def __init__(self, factor, wrap):
        super().__init__(factor)
        self.wrap = wrap

    def forward(self, series):
        return self.wrap(super().forward(series), series)


WRAPPED = {
    "a tuple": (lambda logits, series: (logits, series), lambda out: out[0][:, 1]),
    "a dictionary": (lambda logits, series: {"logits": logits, "read": series}, lambda out: out["logits"][:, 1]),
}


@pytest.mark.parametrize("form", WRAPPED)
def test_several_results_do_not_hide_numbers_that_the_target_reads_past_the_network(form):
    wrap, target = WRAPPED[form]
    found = unrolled.explain(Results(1.0, wrap), SERIES, target=target)
    assert any("past its recurrent network" in note for note in found.notes)
    # the other result reads them past the network as well, and nobody asked for it
    constant = Results(0.0, lambda logits, series: wrap(logits + 3.0, series))
    assert not unrolled.explain(constant, SERIES, target=target).notes


class BesideLayer(Skips):
    """Reads the last numbers by a layer of its own as well, and a vector of its own."""

    def __init__(self, read, twice=False):
        super().__init__(1.0)
        self.read, self.twice = read, twice
        self.beside, self.scale = nn.Linear(4, 4).double(), nn.Linear(4, 8).double()
        self.own = nn.Parameter(torch.ones(4).double())

    def forward(self, series):
        read = [self.rnn(part)[0][:, -1] for part in (series.chunk(2, dim=1) if self.twice else [series])]
        return self.head(self.read(self, sum(read), series[:, -1]) + 2.0 * self.own)


def scaled(model, state, numbers):
    scale, shift = model.scale(numbers).chunk(2, dim=-1)
    return state * scale + shift


BESIDE = {
    "a linear layer": lambda model, state, numbers: state + model.beside(numbers),
    "an activation of a layer": lambda model, state, numbers: state + torch.relu(model.beside(numbers)),
    "a product with a parameter": lambda model, state, numbers: state + numbers @ model.beside.weight,
    "standardised numbers": lambda model, state, numbers: state + model.beside(numbers / numbers.std()),
    "a scale and a shift": scaled,
}


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("way", BESIDE)
def test_numbers_that_a_layer_reads_past_the_network_are_constants_and_no_bias_of_the_layer(way, twice):
    model = BesideLayer(BESIDE[way], twice)
    found = unrolled.explain(model, SERIES, target=1)
    with torch.no_grad():
        past = model.read(model, torch.zeros(1, 4, dtype=torch.float64), SERIES[:, -1])
        assert found.biases["constants"] == pytest.approx((model.head.weight[1] @ past[0]).item())
        assert found.biases["own"] == pytest.approx((model.head.weight[1] @ (2.0 * model.own)).item())
    assert found.biases.keys() == {"constants", "own", "head.bias"}
    assert any("past its recurrent network" in note for note in found.notes)


class OfWords(nn.Module):
    """Reads words by a GRU, and something of its arguments past it."""

    def __init__(self, read):
        super().__init__()
        torch.manual_seed(0)
        self.read, self.embed, self.rnn = read, nn.Embedding(9, 4), nn.GRU(4, 4, batch_first=True)
        self.scale, self.beside, self.own = nn.Parameter(torch.rand(4)), nn.Linear(2, 4), nn.Parameter(torch.rand(9, 4))
        self.head = nn.Linear(4, 2)
        self.double()

    def forward(self, ids, given):
        return self.head(self.rnn(self.embed(ids))[0][:, -1] + self.read(self, ids, given))


PAST = {
    "integers as numbers": (lambda model, _, given: model.beside(given.double()), "constants"),
    "counts of words": (
        lambda model, ids, _: nn.functional.one_hot(ids, 9).sum(1).double() @ model.own,
        "constants",
    ),
    "rows of a parameter": (lambda model, ids, _: model.own[ids].mean(1), "constants"),
    "rows of a table": (lambda model, ids, _: model.embed.weight[ids].mean(1), "embed.weight"),
    "vectors behind a scale": (lambda model, ids, _: (model.scale * model.embed(ids)).mean(1), "embed.weight"),
    "kept vectors": (lambda model, ids, _: (model.embed(ids) * (ids > 2)[..., None]).mean(1), "embed.weight"),
}


@pytest.mark.parametrize("way", PAST)
def test_words_and_integers_that_are_read_past_the_network_are_noted(way):
    read, name = PAST[way]
    ids, given, model = torch.tensor([[3, 1, 7]]), torch.tensor([[5, 2]]), OfWords(read)
    found = unrolled.explain(model, ids, given, target=1)
    with torch.no_grad():
        assert found.biases[name] == pytest.approx((model.head.weight[1] @ read(model, ids, given)[0]).item())
    assert found.biases.keys() == {name, "head.bias"}
    assert any("past its recurrent network" in note for note in found.notes)


OWN = {
    "a parameter": (lambda model, *_: model.scale[None], "scale"),
    "a row of a parameter": (lambda model, *_: model.own[:1] * 2.0, "own"),
    "a parameter where a mask of words is": (lambda model, ids, _: model.own[:1] * (ids > 0)[:, :1], "own"),
    "numbers of the code": (lambda *_: torch.ones(1, 4).double(), "constants"),
}


@pytest.mark.parametrize("way", OWN)
def test_what_the_model_adds_itself_keeps_its_name_and_is_not_noted(way):
    read, name = OWN[way]
    found = unrolled.explain(OfWords(read), torch.tensor([[3, 1, 7]]), torch.tensor([[5, 2]]), target=1)
    assert found.biases.keys() == {name, "head.bias"}
    assert not any("past its recurrent network" in note for note in found.notes)


def test_what_a_mask_of_numbers_keeps_of_a_parameter_has_the_name_of_the_parameter():
    model = BesideLayer(lambda model, state, ones: state + ones * model.beside.weight[0])
    series = torch.ones(1, 6, 4, dtype=torch.float64)
    found = unrolled.explain(model, series, target=1)
    assert found.biases.keys() == {"beside.weight", "own", "head.bias"}


class Shifted(Skips):
    """Adds constants of its code, as a forecaster that gives its target its unit again."""

    def __init__(self):
        super().__init__(0.0)

    def forward(self, series):
        return 2.0 * self.head(self.rnn(series)[0][:, -1]) + 3.0


def test_constants_of_the_code_are_not_noted():
    found = unrolled.explain(Shifted(), SERIES, target=1, strict=True)
    assert found.biases["constants"] == pytest.approx(3.0)


def test_constants_of_a_model_that_reads_no_numbers_are_not_noted():
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn, self.head = nn.Embedding(9, 4), nn.GRU(4, 4, batch_first=True), nn.Linear(4, 2)

        def forward(self, ids):
            return self.head(self.rnn(self.embed(ids))[0][:, -1]) + 3.0

    found = unrolled.explain(Words(), torch.tensor([[1, 2, 3]]), target=1)
    assert found.biases["constants"] == pytest.approx(3.0)
    assert not any("constants" in note for note in found.notes)


def test_the_model_is_left_as_it_was_by_the_look_past_its_network():
    model, before = Skips(1.0), {name: value.clone() for name, value in Skips(1.0).state_dict().items()}
    unrolled.explain(model, SERIES, target=1)
    assert not model.rnn._forward_hooks
    assert not SERIES.requires_grad
    assert all(each.grad is None for each in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.read, self.keep = nn.Linear(4, 4), nn.Linear(4, 4)

    def step(self, x, state):
        return torch.tanh(self.read(x) + self.keep(state))


class BySteps(Skips):
    """Calls the method of a cell, then adds a constant of its code."""

    def __init__(self):
        super().__init__(0.0)
        self.cell = Cell().double()
        del self.rnn

    def forward(self, series):
        state = series.new_zeros(len(series), 4)
        for x in series.unbind(1):
            state = self.cell.step(x, state)
        return self.head(state) + 3.0


class InPlace(Shifted):
    def forward(self, series):
        series[torch.isnan(series)] = 0.0
        return super().forward(series)


@pytest.mark.parametrize("kind", [BySteps, InPlace])
def test_a_constant_of_the_code_is_no_number_however_the_network_is_called(kind):
    found = unrolled.explain(kind(), SERIES, target=1)
    assert found.biases["constants"] == pytest.approx(3.0)
    assert not any("constants" in note for note in found.notes)
