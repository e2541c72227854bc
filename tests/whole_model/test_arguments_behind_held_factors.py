"""An argument that reaches the output only through factors that are held has no part of it, and a note says so."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from unrolled.errors import StrictError

SERIES = torch.linspace(-1.0, 1.0, 20).view(2, 5, 2).double()
SCALE = torch.tensor([[1.5], [2.5]]).double()
ONE, OTHER = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[7, 1, 2], [3, 5, 8]])
HELD = "only through factors that are held"


class Mean(nn.Module):
    """The mean of a negative binomial distribution: of a network's states, in the unit of another argument."""

    def __init__(self, read):
        super().__init__()
        self.rnn, self.head, self.read = nn.GRU(2, 4, batch_first=True), nn.Linear(4, 1), read
        self.double()

    def forward(self, series, *others):
        return self.read(self.head(self.rnn(series)[0].mean(1)), *others)


class Texts(nn.Module):
    """Reads two texts; one vector of each token."""

    def __init__(self, read):
        super().__init__()
        self.one, self.other, self.head, self.read = nn.Embedding(9, 4), nn.Embedding(9, 4), nn.Linear(4, 2), read
        self.double()

    def forward(self, one, other):
        return self.head(self.read(self.one(one), self.other(other)))


def notes(model, *args, **options):
    return [note for note in unrolled.account(model, *args, target=0, **options).notes if HELD in note]


BEHIND = {
    "an exponential": (lambda read, scale: torch.exp(read) * scale, "0"),
    "a variance": (lambda read, scale: read.var(dim=0) * scale, "0"),
    "the factor of a content": (lambda read, scale: F.softplus(read) * scale.exp(), "1"),
    "a divisor": (lambda read, scale: read / scale, "1"),
}


@pytest.mark.parametrize("way", BEHIND)
@pytest.mark.parametrize("expansion", ["secant", "shares", "mean(operating, gates)"])
def test_an_argument_behind_a_held_factor_is_noted(way, expansion):
    read, name = BEHIND[way]
    found = unrolled.account(Mean(read), SERIES, SCALE, target=0, expansion=expansion)
    assert set(found.features) == {"0", "1"} - {name}
    (note,) = (note for note in found.notes if HELD in note)
    assert note.startswith(f"argument {name} enters {HELD}, so the output is credited to what these factors multiply")
    with pytest.raises(StrictError, match=HELD):
        unrolled.account(Mean(read), SERIES, SCALE, target=0, strict=True)


WITH_ROWS = {
    "a product of two contents": lambda read, scale: F.softplus(read) * scale,
    "a way past the factor": lambda read, scale: torch.exp(read) * scale + read,
    "an argument that is not read": lambda read, _: read,
    "a factor that does not change": lambda read, scale: torch.exp(0.0 * read) * scale + read,
}


@pytest.mark.parametrize("way", WITH_ROWS)
def test_an_argument_that_has_rows_or_no_effect_is_not_noted(way):
    assert not notes(Mean(WITH_ROWS[way]), SERIES, SCALE)


def test_several_such_arguments_are_in_one_note():
    def read(of_series, scale, unit):
        return torch.exp(of_series) * torch.cos(scale) * unit

    (note,) = notes(Mean(read), SERIES, SCALE, torch.tensor([[0.5], [2.0]]).double())
    assert note.startswith("arguments 0, 1 enter only")


def test_tokens_behind_a_held_factor_are_noted():
    def attend(one, other):
        return (torch.softmax(one @ other.transpose(1, 2), dim=-1) @ other).mean(1)

    found = unrolled.account(Texts(attend), ONE, OTHER, target=0)
    assert set(found.texts) == {"1"}
    assert [note for note in found.notes if note.startswith(f"argument 0 enters {HELD}")]
    assert not notes(Texts(lambda one, other: one.mean(1) + attend(one, other)), ONE, OTHER)
    assert not notes(Texts(lambda _, other: other.mean(1)), ONE, OTHER)


MASKS = {
    "a factor": (lambda read, mask: read * mask, torch.tensor([[1.0], [0.0]])),
    "minus infinity": (
        lambda read, mask: torch.softmax(read + mask, dim=0) * read,
        torch.tensor([[0.0], [-torch.inf]]),
    ),
    "a low number": (
        lambda read, mask: torch.softmax(read + mask, dim=0) * read,
        torch.tensor([[0.0], [-1000.0]]),
    ),
    "a count": (lambda read, count: read / count, torch.tensor([[3], [5]])),
}


@pytest.mark.parametrize("way", MASKS)
def test_masks_and_counts_are_not_noted(way):
    read, mask = MASKS[way]
    assert not notes(Mean(read), SERIES, mask.double() if mask.is_floating_point() else mask)


def test_the_model_runs_as_it_is_for_no_account_that_reads_all_its_arguments():
    runs = []

    def counted(read, scale):
        runs.append(1)
        return F.softplus(read) * scale

    def held(read, scale):
        runs.append(1)
        return torch.exp(read) * scale

    unrolled.account(Mean(counted), SERIES, SCALE, target=0)
    assert len(runs) == 2
    unrolled.account(Mean(held), SERIES, SCALE, target=0)
    assert len(runs) == 5


def test_a_model_that_keeps_its_state_is_run_from_it_and_left_as_it_was():
    class Keeps(Mean):
        def forward(self, series, scale):
            self.calls = getattr(self, "calls", 0) + 1
            return super().forward(series, scale) * self.calls

    model = Keeps(BEHIND["an exponential"][0])
    assert notes(model, SERIES, SCALE)
    assert not hasattr(model, "calls")
    assert all(weight.requires_grad and weight.grad is None for weight in model.parameters())


class LessTheMean(nn.Module):
    """Reads numbers less their mean over the batch: the sum of its outputs changes with none of them."""

    def __init__(self, end):
        super().__init__()
        torch.manual_seed(0)
        self.head, self.end = nn.Linear(4, 3, bias=False), end

    def forward(self, x):
        return self.end(self.head(x - x.mean(0)))


@pytest.mark.parametrize("end", [nn.Identity(), nn.LogSoftmax(-1)])
def test_numbers_whose_parts_cancel_over_the_batch_are_read(end):
    """An example has the account that it has where it is the target alone."""
    model, x = LessTheMean(end).double(), torch.randn(3, 4).double()
    whole = unrolled.account(model, x, target=1)
    assert whole.closes
    assert not any("only through factors" in note for note in whole.notes)
    for place in range(3):
        one = unrolled.account(model, x, target=lambda out, k=place: out[k : k + 1, 1])
        torch.testing.assert_close(whole[place].features["0"].reshape(3, 4), one.features["0"].reshape(3, 4))


def test_numbers_that_are_a_factor_only_are_not_read():
    """The control."""

    class Factor(nn.Module):
        def forward(self, x, y):
            return y * (x - x.mean(0)).exp()

    found = unrolled.account(Factor(), torch.randn(3, 4), torch.randn(3, 4), target=1)
    assert any("argument 0 enters only through factors" in note for note in found.notes)


class Whole(nn.Module):
    """Reads a series by a network; what it makes of its state is combined with numbers of the same series."""

    def __init__(self, combine):
        super().__init__()
        self.rnn, self.head, self.combine = nn.GRU(2, 4, batch_first=True), nn.Linear(4, 1), combine
        self.double()

    def forward(self, series):
        return self.combine(series, self.head(self.rnn(series)[0][:, -1]))


def decayed(series, _):
    """The second number of a step is the time since the last one, by which a memory decays."""
    memory = torch.zeros_like(series[:, 0, :1])
    for step in series.unbind(1):
        memory = memory * torch.exp(-step[:, 1:]) + step[:, :1]
    return memory


PARTS = {
    "a factor of the last value": (lambda series, read: series[:, -1, :1] * torch.exp(read), 9),
    "a sum of logarithms": (lambda series, read: torch.exp(torch.log(series[:, -1, :1].abs()) + read), 9),
    "times between the steps": (decayed, 4),
}


@pytest.mark.parametrize("way", PARTS)
@pytest.mark.parametrize("expansion", ["secant", "mean(operating, gates)"])
def test_numbers_behind_a_held_factor_are_noted_beside_others_of_their_argument(way, expansion):
    combine, count = PARTS[way]
    model, series = Whole(combine), SERIES[:1].clone() + 0.05
    found = unrolled.account(model, series, target=0, expansion=expansion)
    (note,) = (note for note in found.notes if HELD in note)
    assert note.startswith(f"{count} of the 10 numbers other than zero in argument 0 enter {HELD}")
    none = found.features["0"] == 0
    changes = torch.autograd.functional.jacobian(lambda x: model(x)[:, 0].sum(), series) != 0
    assert int((none & changes).sum()) == count


def test_zeros_are_neither_counted_nor_among_those_that_others_are_counted_of():
    """A held factor and a function that is zero at zero give a zero the same part: none."""
    series = SERIES[:1].clone() + 0.05
    series[0, 2, 1], series[0, 3, 0] = 0, 0
    (note,) = notes(Whole(decayed), series)
    assert note.startswith(f"3 of the 8 numbers other than zero in argument 0 enter {HELD}")
    series[0, 1, 1], series[0, 4, 1] = 0, 0
    (note,) = notes(Whole(decayed), series)
    assert note.startswith("1 of the 6 numbers other than zero in argument 0 enters only ")


def test_numbers_of_several_arguments_have_one_note():
    class OfLists(Whole):
        def forward(self, series):
            return super().forward(torch.nn.utils.rnn.pad_sequence(series, batch_first=True))

    model = OfLists(lambda series, read: series[:, 0, :1] * torch.exp(read))
    first, other = SERIES + 1.05
    (note,) = notes(model, [first, other[:4]])
    assert note.startswith(f"16 of the 18 numbers other than zero in arguments 0.0, 0.1 enter {HELD}")


def less_itself(series, read):
    """A number of 1 has a part of 1 and one of -1."""
    return (series * series - series).sum((1, 2))[:, None] * (1 + read)


WHOLE = {
    "parts of a number that cancel": less_itself,
    "a product of two contents": lambda series, read: series[:, -1, :1] * (1 + read),
    "a way past the factor": lambda series, read: series.sum((1, 2))[:, None] * torch.exp(read),
    "numbers that are not read": lambda series, _: series[:, -1, :1] * torch.exp(series[:, -1, :1]),
    "the largest": lambda series, read: series.amax((1, 2))[:, None] + 0 * read,
}


@pytest.mark.parametrize("way", WHOLE)
def test_numbers_that_are_read_or_have_no_effect_are_not_noted(way):
    assert SERIES[1, 4, 1] == 1
    assert not notes(Whole(WHOLE[way]), SERIES)


def test_numbers_whose_parts_cancel_over_the_batch_are_read_beside_others():
    class AndTheFirst(LessTheMean):
        def forward(self, x):
            return super().forward(x) + x[:, :1]

    model = AndTheFirst(nn.Identity()).double()
    assert not notes(model, torch.randn(2, 4).double())


def test_padding_by_zeros_costs_no_further_run():
    runs = []

    def counted(series, read):
        runs.append(1)
        return series[:, :2].sum((1, 2))[:, None] * (1 + read)

    padded = SERIES + 2.0
    padded[0, 3:] = 0
    model = Whole(counted)
    assert not notes(model, padded)
    assert len(runs) == 2


def test_numbers_that_an_expansion_leaves_out_are_not_called_held():
    class Relu(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.RNN(1, 2, nonlinearity="relu", bias=False, batch_first=True).double()
            with torch.no_grad():
                self.rnn.weight_ih_l0.copy_(torch.tensor([[-1.0], [1.0]]))
                self.rnn.weight_hh_l0.copy_(torch.tensor([[3.0, 0.0], [0.0, 0.0]]))

        def forward(self, series):
            return self.rnn(series)[0][:, -1].sum(-1, keepdim=True)

    class First(Relu):
        """Reads the unit that has no slope at a state of zero, so that nothing is left of the argument."""

        def forward(self, series):
            return self.rnn(series)[0][:, -1, :1]

    series = torch.tensor([[[-1.0], [1.0]]]).double()
    for model, left_out in ((Relu(), 1), (First(), 2)):
        found = unrolled.account(model, series, target=0, expansion="zero")
        assert int((found.features["0"] == 0).sum()) == left_out
        assert not [note for note in found.notes if HELD in note]
    assert not notes(Relu(), series)


@pytest.mark.parametrize("way", PARTS)
def test_what_no_expansion_reads_is_noted_where_one_is_not_exact(way):
    combine, count = PARTS[way]
    (note,) = notes(Whole(combine), SERIES[:1].clone() + 0.05, expansion="zero")
    assert note.startswith(f"{count} of the 10 numbers")
