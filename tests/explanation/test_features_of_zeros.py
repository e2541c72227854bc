"""A series of zeros contributes nothing, and has the features of any other one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError

NAMES = ("heat", "wind", "rain")


class Series(nn.Module):
    def __init__(self, front=None):
        super().__init__()
        torch.manual_seed(0)
        self.front, self.rnn, self.head = front or nn.Identity(), nn.GRU(3, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, x):
        return self.head(self.rnn(self.front(x))[0].mean(dim=1))


class Texts(Series):
    """Reads words, and numbers that do not reach the network."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 3)

    def forward(self, ids, x):
        return super().forward(self.embed(ids)) + x.sum(dim=(1, 2))[:, None]


@pytest.mark.parametrize(
    "front", [nn.Identity, lambda: nn.Linear(3, 3), lambda: nn.Sequential(nn.Linear(3, 3), nn.Tanh())]
)
def test_a_series_of_zeros_has_features(front):
    model, zeros = Series(front()), torch.zeros(1, 4, 3, device="cpu")
    found = unrolled.explain(model, zeros, features=NAMES, target=1)
    other = unrolled.explain(model, torch.randn(1, 4, 3, device="cpu"), features=NAMES, target=1)
    assert found.features.names == other.features.names == NAMES
    assert not found.feature_scores.any()
    assert other.feature_scores.all()  # the control
    torch.testing.assert_close(found.features.rest, found.token_scores)
    (first, second) = unrolled.explain_batch(model, torch.cat([zeros, zeros]), features=NAMES, target=1)
    assert first.features.names == second.features.names == NAMES
    assert "heat" in str(found)


@pytest.mark.parametrize("value", [0.0, 1.5])
def test_numbers_that_do_not_reach_the_network_are_no_features(value):
    ids, x = torch.tensor([[1, 2, 3, 4]], device="cpu"), torch.full((1, 4, 3), value, device="cpu")
    assert unrolled.explain(Texts(), ids, x, target=1).features is None
    with pytest.raises(UsageError, match="features= names numbers, but"):
        unrolled.explain(Texts(), ids, x, features=NAMES, target=1)


class First(Series):
    """Reads the state of the first step alone."""

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, 0])


@pytest.mark.parametrize("examples", [1, 2])
def test_numbers_of_steps_that_are_not_read_need_not_be_zero(examples):
    x = torch.randn(examples, 4, 3, device="cpu")
    expected = unrolled.explain_batch(First(), x, features=NAMES, target=1)
    x[:, 0] = 0.0
    for one, other in zip(unrolled.explain_batch(First(), x, features=NAMES, target=1), expected, strict=True):
        assert one.features.names == other.features.names == NAMES
        assert not one.feature_scores.any()
        assert other.feature_scores[0].all()  # the control
        torch.testing.assert_close(one.features.values[1:], other.features.values[1:])


class Covariates(Series):
    """Reads two series side by side."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(5, 5, batch_first=True)

    def forward(self, x, y):
        return super().forward(torch.cat([x, y], dim=-1))


def test_a_series_of_zeros_beside_another_has_the_names_that_it_has_in_a_batch():
    x, y = torch.randn(2, 4, 3, device="cpu"), torch.randn(2, 4, 2, device="cpu")
    y[0] = 0.0
    model, names = Covariates(), (*NAMES, "sun", "snow")
    both = unrolled.explain_batch(model, x, y, features=names, target=1)
    for of_batch, example in zip(both, (slice(0, 1), slice(1, 2)), strict=True):
        alone = unrolled.explain(model, x[example], y[example], features=names, target=1)
        assert alone.features.names == of_batch.features.names == names
        torch.testing.assert_close(alone.feature_scores, of_batch.feature_scores, rtol=1e-4, atol=1e-6)
        assert alone.features.rest_of == of_batch.features.rest_of == "biases"
    assert not both[0].feature_scores[:, 3:].any()
    assert both[1].feature_scores.all()  # the control
    unnamed = unrolled.explain(model, x[:1], y[:1], target=1)
    assert unnamed.features.names[:4] == ("x, feature 0", "x, feature 1", "x, feature 2", "y, feature 0")


class Shifted(Series):
    """Adds numbers to every step."""

    def forward(self, x, y):
        return super().forward(x + self.front(y)[:, None])


@pytest.mark.parametrize("front", [nn.Identity, lambda: nn.Linear(3, 3)])
def test_zeros_that_enter_several_steps_are_features_of_none(front):
    model, x = Shifted(front()), torch.randn(2, 4, 3, device="cpu")
    for of_batch in unrolled.explain_batch(model, x, torch.zeros(2, 3, device="cpu"), target=1):
        assert of_batch.features.names == ("feature 0", "feature 1", "feature 2")
    alone = unrolled.explain(model, x[:1], torch.zeros(1, 3, device="cpu"), features=NAMES, target=1)
    assert alone.features.names == NAMES
    assert not any("zeros are shown" in note for note in alone.notes)
    other = unrolled.explain(model, x[:1], torch.ones(1, 3, device="cpu"), target=1)  # the control
    assert any("numbers of argument 1 enter several steps" in note for note in other.notes)


class Smoothed(Series):
    """Reads several steps at once."""

    def __init__(self):
        super().__init__(nn.Conv1d(3, 3, 3, padding=1))

    def forward(self, x):
        return self.head(self.rnn(self.front(x.movedim(1, 2)).movedim(1, 2))[0].mean(dim=1))


def test_zeros_of_which_several_enter_one_step_have_the_features_of_other_numbers():
    model, zeros = Smoothed(), torch.zeros(1, 4, 3, device="cpu")
    found = unrolled.explain(model, zeros, features=NAMES, target=1)
    other = unrolled.explain(model, torch.randn(1, 4, 3, device="cpu"), features=NAMES, target=1)
    assert found.features.names == other.features.names == NAMES
    assert found.features.rest_of == other.features.rest_of == "other steps and biases"
    assert not found.feature_scores.any()
    assert other.feature_scores.all()  # the control


def test_zeros_by_which_nothing_changes_are_no_features():
    class Squares(Series):
        def forward(self, x):
            return super().forward(x * x)

    with pytest.raises(UsageError, match="features= names numbers, but no number of an argument reaches"):
        unrolled.explain(Squares(), torch.zeros(1, 4, 3, device="cpu"), features=NAMES, target=1)


def test_zeros_beside_a_series_of_which_several_steps_enter_one_do_not_take_its_place():
    class Beside(Smoothed):
        def forward(self, x, y):
            return self.head(self.rnn(self.front(x.movedim(1, 2)).movedim(1, 2) + y)[0].mean(dim=1))

    model, single, x = Beside(), Smoothed(), torch.randn(1, 4, 3, device="cpu")
    single.load_state_dict(model.state_dict())
    found = unrolled.explain(model, x, torch.zeros_like(x), features=NAMES, target=1)
    alone = unrolled.explain(single, x, features=NAMES, target=1)
    assert found.features.names == NAMES
    assert found.feature_scores.all()
    torch.testing.assert_close(found.feature_scores, alone.feature_scores)
