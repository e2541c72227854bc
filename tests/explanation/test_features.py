"""Of a model that reads numbers, every number of every step has a contribution, and they add up."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import unrolled
from unrolled.errors import ShapeError, UsageError

KINDS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class Regressor(nn.Module):
    """A normalisation and a layer in front of a network, pooling behind it."""

    def __init__(self, kind: str = "lstm", layers: int = 1, both: bool = False) -> None:
        super().__init__()
        self.norm, self.before = nn.LayerNorm(3), nn.Linear(3, 4)
        self.rnn = KINDS[kind](4, 5, num_layers=layers, bidirectional=both, batch_first=True)
        self.head = nn.Linear(5 * (1 + both), 2)

    def forward(self, series: Tensor) -> Tensor:
        output: Tensor = self.head(self.rnn(self.before(self.norm(series)))[0].mean(dim=1))
        return output


class OfLastState(nn.Module):
    """A GRU over what a function makes of the arguments."""

    def __init__(self, size: int, change: Any) -> None:
        super().__init__()
        self.change, self.rnn, self.head = change, nn.GRU(size, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, *given: Tensor) -> Tensor:
        output: Tensor = self.head(self.rnn(self.change(*given))[0][:, -1])
        return output


class Loop(nn.Module):
    """A cell that the model calls step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(3, 5), nn.Linear(5, 2)

    def forward(self, series: Tensor) -> Tensor:
        state: tuple[Tensor, Tensor] | None = None
        for step in series.unbind(dim=1):
            state = self.cell(step, state)
        assert state is not None
        output: Tensor = self.head(state[0])
        return output


class Padded(nn.Module):
    """A deep bidirectional network over a packed batch."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 5, 2, batch_first=True, bidirectional=True), nn.Linear(10, 2)

    def forward(self, series: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(series, lengths, batch_first=True, enforce_sorted=False)
        output: Tensor = self.head(pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0].sum(dim=1))
        return output


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def adds_up(found: unrolled.Explanation) -> None:
    features, scores = found.features, found.feature_scores
    assert features is not None
    torch.testing.assert_close(scores.sum(dim=1) + features.rest, found.token_scores, rtol=0, atol=1e-12)
    ledger = found.ledger
    whole = float(scores.sum() + features.rest.sum()) + ledger.initial + ledger.bias + ledger.remainder
    assert math.isclose(whole, ledger.logit, abs_tol=1e-12)


@pytest.mark.quick_diagonal(4)  # quick: every network, every expansion
@pytest.mark.parametrize("expansion", ["secant", "path", "shares", "operating"])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_contributions_of_numbers_are_those_of_an_account(kind: str, layers: int, both: bool, expansion: str) -> None:
    model, series = Regressor(kind, layers, both).double(), torch.randn(1, 6, 3, dtype=torch.float64)
    found = unrolled.explain(model, series, target=1, expansion=expansion)
    account = unrolled.account(model, series, target=1, expansion=expansion)
    torch.testing.assert_close(found.feature_scores, account.features["0"][0], rtol=0, atol=1e-12)
    adds_up(found)
    assert found.features is not None
    torch.testing.assert_close(found.features.values, series[0])
    # the rest is what the biases in front of the states contribute, and nothing else
    biases = {**account.biases, **account.constants}
    inner = sum(float(part.sum()) for name, part in biases.items() if not name.startswith("head"))
    assert math.isclose(float(found.features.rest.sum()), inner, abs_tol=1e-12)


def test_without_biases_the_features_of_a_step_are_its_token() -> None:
    model = nn.Sequential(nn.GRU(3, 4, bias=False, batch_first=True), Last(), nn.Linear(4, 1)).double()
    found = unrolled.explain(model, torch.randn(1, 5, 3, dtype=torch.float64), target=0)
    torch.testing.assert_close(found.feature_scores.sum(dim=1), found.token_scores, rtol=0, atol=1e-12)
    with_biases = unrolled.explain(Regressor().double(), torch.randn(1, 5, 3, dtype=torch.float64), target=0)
    assert float((with_biases.feature_scores.sum(dim=1) - with_biases.token_scores).abs().max()) > 1e-6


class Last(nn.Module):
    def forward(self, given: tuple[Tensor, Any]) -> Tensor:
        return given[0][:, -1]


def test_a_linear_network_gives_weight_times_number() -> None:
    """For s_t = U s_{t-1} + W x_t, a number contributes (r^T U^(T-t) W)_k x_tk: multiplied out by a plain loop."""
    model = nn.Sequential(nn.RNN(3, 4, nonlinearity="relu", bias=False, batch_first=True), Last(), nn.Linear(4, 1))
    model = model.double()
    for weight in model[0].parameters():
        nn.init.uniform_(weight, 0.0, 0.5)  # of positive numbers, so that the relu is the identity
    series = torch.rand(1, 5, 3, dtype=torch.float64)
    found = unrolled.explain(model, series, target=0)
    row, expected = model[2].weight.detach()[0], torch.zeros(5, 3, dtype=torch.float64)
    for t in reversed(range(5)):
        expected[t] = (row @ model[0].weight_ih_l0.detach()) * series[0, t]
        row = row @ model[0].weight_hh_l0.detach()
    torch.testing.assert_close(found.feature_scores, expected)


FORMS = {
    "one number a step": (1, lambda x: x[..., None], [(1, 6)]),
    "channels first": (3, lambda x: x.transpose(1, 2), [(1, 3, 6)]),
    "as many channels as steps": (6, lambda x: x.flip(1), [(1, 6, 6)]),
    "steps side by side": (6, lambda x: x.reshape(len(x), -1, 6), [(1, 8, 3)]),
    "two arguments": (5, lambda x, z: torch.cat((x, z), dim=-1), [(1, 6, 3), (1, 6, 2)]),
}


@pytest.mark.parametrize("form", FORMS)
def test_any_form_of_an_argument(form: str) -> None:
    size, change, shapes = FORMS[form]
    model, given = OfLastState(size, change).double(), [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    found = unrolled.explain(model, *given, target=0)
    read = change(*given)[0]
    assert found.features is not None
    torch.testing.assert_close(found.features.values, read)
    # what stands in front of the network only moves numbers, so they are those that it reads itself
    plain = OfLastState(size, lambda x: x).double()
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(found.feature_scores, unrolled.explain(plain, read[None], target=0).feature_scores)


def test_what_one_step_reads_of_others_is_counted_once() -> None:
    convolution = nn.Conv1d(3, 4, 3, padding=1).double()
    model = OfLastState(4, lambda x: torch.relu(convolution(x.transpose(1, 2))).transpose(1, 2)).double()
    series = torch.randn(1, 6, 3, dtype=torch.float64)
    found = unrolled.explain(model, series, target=0)
    adds_up(found)
    account = unrolled.account(model, series, target=0)
    torch.testing.assert_close(found.feature_scores, account.features["0"][0], rtol=0, atol=1e-12)


def test_a_number_that_goes_around_the_network_counts_there_only() -> None:
    class Skip(OfLastState):
        def forward(self, *given: Tensor) -> Tensor:
            return super().forward(*given) + 10 * given[0].sum(dim=(1, 2))[:, None]

    series = torch.randn(1, 6, 3, dtype=torch.float64)
    model, plain = Skip(3, lambda x: x).double(), OfLastState(3, lambda x: x).double()
    plain.load_state_dict(model.state_dict())
    found, without = (unrolled.explain(each, series, target=0) for each in (model, plain))
    torch.testing.assert_close(found.feature_scores, without.feature_scores)
    adds_up(found)


def test_each_example_of_a_batch_has_its_own() -> None:
    series, lengths = torch.randn(3, 7, 3, dtype=torch.float64), torch.tensor([4, 7, 2])
    model = Padded().double()
    for b, found in enumerate(unrolled.explain_batch(model, series, lengths, target=0)):
        n = int(lengths[b])
        alone = unrolled.explain(model, series[b : b + 1, :n], lengths[b : b + 1], target=0)
        torch.testing.assert_close(found.feature_scores, alone.feature_scores)
        assert found.features is not None
        torch.testing.assert_close(found.features.values, series[b, :n])
        adds_up(found)


@pytest.mark.parametrize("make", [Loop, lambda: OfLastState(3, lambda x: x.transpose(1, 2))])
def test_a_batch_as_long_as_its_sequences(make: Any) -> None:
    model, series = make().double(), torch.randn(3, 3, 3, dtype=torch.float64)
    for b, found in enumerate(unrolled.explain_batch(model, series, target=0)):
        alone = unrolled.explain(model, series[b : b + 1], target=0)
        torch.testing.assert_close(found.feature_scores, alone.feature_scores)


def test_a_model_that_calls_its_network_several_times() -> None:
    loop, series = Loop().double(), torch.randn(1, 6, 3, dtype=torch.float64)
    found = unrolled.explain(loop, series, target=1)
    adds_up(found)
    whole = nn.Sequential(nn.LSTM(3, 5, batch_first=True), Last(), loop.head).double()
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    whole[0].load_state_dict({f"{name}_l0": getattr(loop.cell, name) for name in names})
    torch.testing.assert_close(found.feature_scores, unrolled.explain(whole, series, target=1).feature_scores)


def test_networks_above_one_another_are_layers() -> None:
    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.low, self.high = (nn.GRU(size, 4, batch_first=True) for size in (3, 4))

        def forward(self, series: Tensor) -> Tensor:
            return self.high(self.low(series)[0])[0][:, -1]

    stack, series = Stack().double(), torch.randn(1, 5, 3, dtype=torch.float64)
    deep = nn.Sequential(nn.GRU(3, 4, 2, batch_first=True), Last()).double()
    weights = {f"{n[:-1]}0": w for n, w in stack.low.state_dict().items()}
    deep[0].load_state_dict({**weights, **{f"{n[:-1]}1": w for n, w in stack.high.state_dict().items()}})
    for expansion in ("secant", "shares"):
        found, whole = (unrolled.explain(each, series, target=2, expansion=expansion) for each in (stack, deep))
        torch.testing.assert_close(found.feature_scores, whole.feature_scores)
        adds_up(found)


def test_each_sequence_of_several_has_its_own() -> None:
    class Siamese(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(3, 5, batch_first=True)

        def forward(self, one: Tensor, other: Tensor) -> Tensor:
            return (self.rnn(one)[1][0] * self.rnn(other)[1][0]).sum(dim=1, keepdim=True)

    one, other = torch.randn(1, 6, 3, dtype=torch.float64), torch.randn(1, 4, 3, dtype=torch.float64)
    found = unrolled.explain(Siamese().double(), one, other, target=0, features=["x", "y", "z"])
    for each, series in zip(found.sequences, (one, other), strict=True):
        adds_up(each)
        assert each.features is not None
        assert each.features.names == ("x", "y", "z")
        torch.testing.assert_close(each.features.values, series[0])
    assert found.feature_scores.shape == (10, 3)


def test_the_difference_of_two_classes_is_the_difference_of_their_features() -> None:
    model, series = Regressor().double(), torch.randn(1, 6, 3, dtype=torch.float64)
    one, other, both = (
        unrolled.explain(model, series, target=1, **more) for more in ({}, {"every_class": False}, {"against": 0})
    )
    torch.testing.assert_close(one.feature_scores, other.feature_scores)
    zero = unrolled.explain(model, series, target=0)
    torch.testing.assert_close(both.feature_scores, one.feature_scores - zero.feature_scores)
    adds_up(both)


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(9, 4), nn.GRU(4, 6, batch_first=True)

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        states = self.rnn(self.embed(ids))[0]
        return (states if mask is None else states * mask[..., None]).mean(dim=1)


def test_a_model_of_words_has_no_features() -> None:
    ids = torch.tensor([[1, 2, 3]])
    for given in ((ids,), (ids, torch.ones(1, 3))):
        found = unrolled.explain(Words(), *given, target=0)
        assert found.features is None
        with pytest.raises(UsageError, match=r"hold no floating-point numbers|reads token ids beside numbers"):
            _ = found.feature_scores
    with pytest.raises(UsageError, match="features= names numbers, but the arguments hold no floating-point numbers"):
        unrolled.explain(Words(), ids, target=0, features=["a"])


def test_names_that_do_not_fit_are_refused() -> None:
    series = torch.randn(1, 4, 3)
    found = unrolled.explain(Regressor(), series, target=0, features=["a", "b", "c"])
    assert found.features is not None
    assert found.features.names == ("a", "b", "c")
    with pytest.raises(ShapeError, match="features are 2 names; expected 3"):
        unrolled.explain(Regressor(), series, target=0, features=["a", "b"])
    with pytest.raises(ShapeError, match="features are the string 'abc'"):
        unrolled.explain(Regressor(), series, target=0, features="abc")


def test_an_operation_that_is_held_costs_the_features_only() -> None:
    model = OfLastState(3, lambda x: torch.special.bessel_j0(x)).double()
    found = unrolled.explain(model, torch.randn(1, 4, 3, dtype=torch.float64), target=0)
    assert found.features is None
    assert found.exact
    with pytest.raises(UsageError, match="reaches the network step by step"):
        _ = found.feature_scores


def test_a_model_that_leaves_torch_is_explained_without_features() -> None:
    def through_numpy(series: Tensor) -> Tensor:
        return torch.from_numpy(series.numpy() * 2)

    found = unrolled.explain(OfLastState(3, through_numpy), torch.randn(1, 4, 3), target=0)
    assert found.features is None
    assert "cannot be followed" in found.no_features
