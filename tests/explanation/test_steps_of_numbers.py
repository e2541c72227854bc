"""Each number stands at the step that reads it; where that is no single step, the rest and a note say so."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import unrolled
from unrolled.errors import UsageError

K, D = 4, 6


class Model(nn.Module):
    """A model without biases; ``way`` is its forward pass in front of the output layer."""

    def __init__(self, way):
        super().__init__()
        torch.manual_seed(0)
        self.way = way
        self.one, self.two = (nn.GRU(K, D, batch_first=True, bias=False) for _ in range(2))
        self.cell, self.head = nn.GRUCell(K, D, bias=False), nn.Linear(D, 1, bias=False)
        self.conv, self.linear = nn.Conv1d(K, K, 3, padding=1, bias=False), nn.Linear(K, K, bias=False)
        self.double().eval()

    def forward(self, *given):
        return self.head(self.way(self, *given))


def last(m, x):
    return m.one(x)[0][:, -1]


def loop(m, x, order):
    h = x.new_zeros(len(x), D)
    for k in order:
        h = m.cell(x[:, k], h)
    return h


def both_ways(m, x):
    return m.one(x)[0][:, -1] + m.two(x.flip(1))[0][:, -1]


def series(steps=5, examples=1):
    torch.manual_seed(1)
    return torch.randn(examples, steps, K, dtype=torch.float64)


ONE_STEP = {
    "as it is": (last, lambda x: x),
    "channels first": (lambda m, x: last(m, x.mT), lambda x: x.mT),
    "reversed": (lambda m, x: last(m, x.flip(1)), lambda x: x.flip(1)),
    "a layer in front": (lambda m, x: last(m, m.linear(x).flip(1)), lambda x: x.flip(1)),
    "a relu in front": (lambda m, x: last(m, x.relu()), lambda x: x),
    "normalised by feature": (lambda m, x: last(m, F.layer_norm(x, (K,))), lambda x: x),
    "a loop": (lambda m, x: loop(m, x, range(x.shape[1])), lambda x: x),
    "a loop from the end": (lambda m, x: loop(m, x, reversed(range(x.shape[1]))), lambda x: x.flip(1)),
    "the last three steps": (lambda m, x: last(m, x[:, -3:]), lambda x: x[:, -3:]),
    "an initial state of numbers": (
        lambda m, x: m.one(x, torch.cat((x, x), -1)[:, 0, :D][None])[0][:, -1],
        lambda x: x,
    ),
}


@pytest.mark.quick_diagonal(2)  # quick: every way
@pytest.mark.parametrize("steps", [5, K])
@pytest.mark.parametrize("way", ONE_STEP, ids=str)
def test_without_biases_the_numbers_of_a_step_are_all_that_it_contributes(way, steps):
    change, read = ONE_STEP[way]
    x = series(steps)
    if way == "channels first":
        x = x.mT.contiguous()
    found = unrolled.explain(Model(change), x)
    assert found.features is not None
    torch.testing.assert_close(found.features.values, read(x)[0])
    torch.testing.assert_close(found.feature_scores.sum(1), found.token_scores, rtol=0, atol=1e-12)
    assert found.features.rest_of == "biases"
    assert float(found.token_scores.abs().max()) > 1e-4


def test_a_model_that_reads_backward_is_the_model_of_the_reversed_series():
    x = series()
    forward, backward = Model(both_ways), Model(lambda m, x: both_ways(m, x.flip(1)))
    one, other = unrolled.explain(forward, x), unrolled.explain(backward, x.flip(1).contiguous())
    for each, same in zip(one.sequences, other.sequences, strict=True):
        torch.testing.assert_close(each.feature_scores, same.feature_scores)
        torch.testing.assert_close(each.token_scores, same.token_scores)
    for each, values in zip(one.sequences, (x[0], x[0].flip(0)), strict=True):
        torch.testing.assert_close(each.features.values, values)
        torch.testing.assert_close(each.feature_scores.sum(1), each.token_scores, rtol=0, atol=1e-12)


@pytest.mark.parametrize("way", ["reversed", "a loop from the end", "a layer in front", "normalised by feature"])
def test_a_batch_as_long_as_its_series_has_the_numbers_of_each_example(way):
    change, read = ONE_STEP[way]
    x = series(K, K)
    for b, found in enumerate(unrolled.explain_batch(Model(change), x)):
        torch.testing.assert_close(found.features.values, read(x)[b])
        torch.testing.assert_close(found.feature_scores.sum(1), found.token_scores, rtol=0, atol=1e-12)


def test_packed_series_that_are_sorted_keep_their_numbers():
    lengths, x = torch.tensor([2, 4, 3]), series(4, 3)

    def way(m, x):
        packed = pack_padded_sequence(m.linear(x), lengths, batch_first=True, enforce_sorted=False)
        return m.one(packed)[1][0]

    for b, found in enumerate(unrolled.explain_batch(Model(way), x)):
        torch.testing.assert_close(found.features.values, x[b, : lengths[b]])
        torch.testing.assert_close(found.feature_scores.sum(1), found.token_scores, rtol=0, atol=1e-12)


def test_a_step_that_reads_no_number_is_noted():
    def shifted(x):
        return torch.cat((x[:, :1] * 0, x[:, :-1]), 1)

    x = series()
    for way in (lambda m, x: last(m, F.pad(x, (0, 0, 1, -1))), lambda m, x: loop(m, F.pad(x, (0, 0, 1, -1)), range(5))):
        found = unrolled.explain(Model(way), x)
        torch.testing.assert_close(found.features.values, shifted(x)[0])
        torch.testing.assert_close(found.feature_scores.sum(1), found.token_scores, rtol=0, atol=1e-12)
        assert "1 of the steps read no number of argument 0; zeros are shown there" in found.notes


MIXED = {
    "less the mean": lambda x: x - x.mean(1, keepdim=True),
    "a moving average": lambda x: F.avg_pool1d(x.mT, 3, 1, 1).mT,
    "attention": lambda x: (x @ x.mT).softmax(-1) @ x,
    "differences": lambda x: torch.cat((x[:, :1], x[:, 1:] - x[:, :-1]), 1),
}


@pytest.mark.quick_diagonal(3)  # quick: every way, every reading
@pytest.mark.parametrize("read", [last, lambda m, x: loop(m, x, reversed(range(x.shape[1]))), both_ways])
@pytest.mark.parametrize("way", MIXED, ids=str)
def test_where_steps_mix_the_rest_is_not_called_biases(way, read):
    x = series()
    found = unrolled.explain(Model(lambda m, x: read(m, MIXED[way](x))), x)
    for each in found.sequences:
        assert each.features.rest_of == "other steps and biases"
        assert any("numbers of several steps enter one step" in note for note in each.notes)
        torch.testing.assert_close(each.features.values, x[0])
        total = each.feature_scores.sum(1) + each.features.rest
        torch.testing.assert_close(total, each.token_scores, rtol=0, atol=1e-12)
        assert float(each.features.rest.abs().max()) > 1e-4  # without any bias
        assert abs(float(each.features.rest.sum())) < 1e-12
        assert "rest (biases)" not in str(each)
    # where two axes may be that of time, none is taken
    found = unrolled.explain(Model(lambda m, x: read(m, MIXED[way](x))), series(K))
    for each in found.sequences:
        assert each.features is None
        assert any("no contributions of single numbers are shown" in note for note in each.notes)
    with pytest.raises(UsageError, match="numbers of several steps"):
        unrolled.explain(Model(lambda m, x: read(m, MIXED[way](x))), series(K), features=list("abcd"))


RESAMPLED = {  # 12 steps become 4, each of numbers that others read as well
    "interpolated": lambda x: F.interpolate(x.mT, size=K, mode="linear").mT.cumsum(1),
    "averages that overlap": lambda x: F.avg_pool1d(x.mT, 4, 3, 1).mT,
    "a matrix over steps": lambda x: torch.linspace(-1, 1, K * 3 * K, dtype=x.dtype).view(K, 3 * K).cos() @ x,
}


@pytest.mark.parametrize("read", [last, lambda m, x: loop(m, x, range(x.shape[1])), both_ways])
@pytest.mark.parametrize("way", RESAMPLED, ids=str)
def test_features_are_no_steps_where_a_model_makes_as_many_steps_of_others(way, read):
    x = series(3 * K)
    assert RESAMPLED[way](x).shape == (1, K, K)
    found = unrolled.explain(Model(lambda m, x: read(m, RESAMPLED[way](x))), x)
    for each in found.sequences:
        assert each.features is None
        assert any("no contributions of single numbers are shown" in note for note in each.notes)


@pytest.mark.parametrize("steps", [5, K])
def test_numbers_that_describe_the_series_are_in_the_rest_by_name(steps):
    def way(m, static, x):
        return last(m, x.flip(1) + m.linear(static)[:, None])

    x, static = series(steps), torch.randn(1, K, dtype=torch.float64)
    found = unrolled.explain(Model(way), static, x)
    torch.testing.assert_close(found.features.values, x[0].flip(0))
    assert found.features.rest_of == "other numbers and biases"
    assert any("numbers of argument 0 enter several steps" in note for note in found.notes)
    assert float(found.features.rest.abs().max()) > 1e-4
    # and by themselves they are numbers of no step
    alone = unrolled.explain(Model(lambda m, z: last(m, m.linear(z)[:, None].expand(-1, steps, -1))), static)
    assert alone.features is None


class Forecasts(nn.Module):
    """Goes on from a series by what it forecast last."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head = nn.GRU(K, D, batch_first=True), nn.Linear(D, K)
        self.double()

    def forward(self, series):
        states, last = self.rnn(series)
        read = self.head(states[:, -1:])
        for _ in range(3):
            states, last = self.rnn(read, last)
            read = self.head(states)
        return read[:, 0]


def test_steps_behind_the_end_of_a_series_show_no_number_of_the_next_example():
    """The judge is each example alone."""
    model = Forecasts()
    series = torch.linspace(0.1, 1.9, 3 * 5 * K).view(3, 5, K).double()
    for number, found in enumerate(unrolled.explain_batch(model, series, target=1)):
        alone = unrolled.explain(model, series[number : number + 1], target=1)
        assert len(found) == 8
        assert not found.features.values[5:].any()
        torch.testing.assert_close(found.features.values, alone.features.values, rtol=0, atol=0)
        torch.testing.assert_close(found.features.scores, alone.features.scores, rtol=0, atol=1e-12)


class OfProducts(nn.Module):
    """A step that multiplies its state by one argument, and may read another one by itself."""

    def __init__(self):
        super().__init__()
        self.read, self.beside, self.keep = nn.Linear(K, D), nn.Linear(K, D), nn.Linear(D, D)

    def forward(self, x, y, h):
        return torch.tanh((self.read(x) - self.read.bias) * h + self.keep(h) + (0.0 if y is None else self.beside(y)))


def by_products(model, x, y=None):
    h = x.new_zeros(1, D)
    for step in range(x.shape[1]):
        h = model.step(x[:, step], None if y is None else y[:, step], h)
    return h


def by_each_and_their_mean(*series):
    model = Model(by_products)
    model.step = OfProducts().double()
    return [
        unrolled.explain(model, *series, target=0, rnn="step", expansion=each)
        for each in ("operating", "path", "mean(operating, path)", "mean(path, operating)")
    ]


def test_a_mean_of_expansions_of_which_one_gives_no_number_a_part_shows_no_features():
    """At a state of zero nothing is left of what each step reads."""
    *parts, mean, other = by_each_and_their_mean(torch.linspace(0.1, 1.9, 3 * K).view(1, 3, K).double())
    assert [each.features is None for each in (*parts, mean, other)] == [False, True, True, True]
    assert mean.no_features == other.no_features == parts[1].no_features
    torch.testing.assert_close(mean.token_scores, sum(each.token_scores for each in parts) / 2, rtol=0, atol=1e-12)


def test_a_mean_of_expansions_of_which_one_gives_an_argument_no_part_shows_half_of_the_others():
    x, y = (torch.linspace(low, 1.9, 3 * K).view(1, 3, K).double() for low in (0.1, -0.5))
    one, two, *means = by_each_and_their_mean(x, y)
    assert (one.features.scores.shape, two.features.scores.shape) == ((3, 2 * K), (3, K))
    for mean in means:
        assert mean.features.names == one.features.names
        torch.testing.assert_close(mean.features.values, torch.cat([x[0], y[0]], dim=1))
        expected = torch.cat(
            [one.features.scores[:, :K] / 2, (one.features.scores[:, K:] + two.features.scores) / 2], 1
        )
        torch.testing.assert_close(mean.features.scores, expected, rtol=0, atol=1e-12)
        whole = mean.features.scores.sum(1) + mean.features.rest
        torch.testing.assert_close(whole, mean.token_scores, rtol=0, atol=1e-12)


@pytest.mark.parametrize("expansion", ["mean(operating, path)", "mean(path, operating)"])
def test_a_mean_says_of_the_features_what_one_of_its_expansions_says(expansion):
    """One finds numbers of several steps, and the other finds that they contribute nothing."""
    model = Model(lambda m, x, y: by_products(m, x.cumsum(1), y))
    model.step = OfProducts().double()
    x, y = (torch.linspace(low, 1.9, 3 * K).view(1, 3, K).double() for low in (0.1, -0.5))
    found = unrolled.explain(model, x, y, target=0, rnn="step", expansion=expansion)
    assert found.features.names == tuple(f"1, feature {k}" for k in range(K))
    assert found.features.rest_of == "other numbers and biases"
    assert any(note.startswith("numbers of argument 0 enter several steps") for note in found.notes)
    with pytest.raises(UsageError, match="may name numbers of argument 0, which enter several steps"):
        unrolled.explain(model, x, y, target=0, rnn="step", expansion=expansion, features=["a", "b", "c", "d"])
