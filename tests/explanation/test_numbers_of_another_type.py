"""Numbers of another type than the weights, as numpy makes them: the error names both types and the way out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError

CALLS = {
    "explain": unrolled.explain,
    "explain_batch": unrolled.explain_batch,
    "account": unrolled.account,
    "check": unrolled.check,
}
X = torch.tensor(np.linspace(-1, 1, 12).reshape(1, 4, 3), device="cpu")


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(3, 1, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x)[0]


LAYERS = {
    "attention": Attends,
    "prelu": nn.PReLU,
    "linear": lambda: nn.Linear(3, 3),
    "none": nn.Identity,
    "convolution": lambda: nn.Conv1d(4, 4, 1),
    "norm": lambda: nn.LayerNorm(3),
    "batch": lambda: nn.BatchNorm1d(4),
    "group": lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.ReLU()),
}


class Model(nn.Module):
    """Has a layer of some kind in front of its network."""

    def __init__(self, kind):
        super().__init__()
        self.first = LAYERS[kind]()
        self.rnn, self.head = nn.GRU(3, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, x):
        return self.head(self.rnn(self.first(x))[0][:, -1])


class Cells(Model):
    def __init__(self, kind):
        super().__init__(kind)
        self.rnn = nn.LSTMCell(3, 5)

    def forward(self, x):
        state = None
        for each in self.first(x).unbind(1):
            state = self.rnn(each, state)
        return self.head(state[0])


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("made", [Model, Cells])
def test_numbers_of_another_type_than_the_weights(call, kind, made):
    said = r"^the model fails on an argument of torch.float64, since it computes in torch.float32; pass x.to\("
    with pytest.raises(UsageError, match=said + r"torch.float32\), or convert the model: model.to\(torch.float64\)$"):
        call(made(kind), X)
    assert call(made(kind), X.to(torch.float32)) is not None  # the remedy
    assert call(made(kind).to(torch.float64), X) is not None  # the other one
    with pytest.raises(UsageError, match=r"argument of torch.float32, since it computes in torch.float64; pass x.to"):
        call(made(kind).double(), X.float())


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("integers", ["int64", "int32", "int16", "int8", "uint8", "bool"])
def test_integers_where_numbers_are_expected(kind, integers):
    x = (X > 0).to(getattr(torch, integers))
    for call in (unrolled.account, unrolled.explain):
        with pytest.raises(UsageError, match=rf"argument of torch.{integers}, .* pass x.to\(torch.float32\)$"):
            call(Model(kind), x)
        assert call(Model(kind), x.to(torch.float32)) is not None  # the remedy


def test_a_mistake_of_the_model_is_its_own():
    class Mixes(Model):
        def forward(self, x):
            return super().forward(x.double())

    class Refuses(Model):
        def forward(self, x):
            raise ValueError(f"unknown type of numbers: {x.dtype}, expected torch.float64")

    for made, said in ((Mixes, "(?i)float64|double|mixed dtype"), (Refuses, "unknown type of numbers")):
        for kind in LAYERS:
            with pytest.raises((ValueError, RuntimeError), match=said) as told:
                unrolled.explain(made(kind), X.float())
            assert not isinstance(told.value, UsageError)


class OfIds(Model):
    """Reads one-hot vectors of ids, or how many there are, without a conversion."""

    def __init__(self, kind, made):
        super().__init__(kind)
        self.made = made

    def forward(self, ids):
        return super().forward(self.made(ids))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", LAYERS)
def test_integers_that_the_model_makes_of_ids_are_not_the_arguments(call, kind):
    ids = torch.tensor([[0, 1, 2, 1]], device="cpu")
    for made in (
        lambda each: nn.functional.one_hot(each, 3),
        lambda each: (each != 0).sum(dim=1)[:, None, None].expand(1, 4, 3),
    ):
        with pytest.raises((RuntimeError, ValueError), match=r"(?i)int64|long|mixed dtype") as told:
            call(OfIds(kind, made), ids)
        assert not isinstance(told.value, UsageError)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_which_of_several_types_of_numbers_is_read(call):
    class Weighs(Model):
        def forward(self, x, weight, twice):
            return super().forward(x.double() if twice else x) * weight.float()

    weight = torch.linspace(2, 3, 2, dtype=torch.float64, device="cpu")
    with pytest.raises(RuntimeError, match=r"(?i)double"):
        call(Weighs("linear"), X.float(), weight, True)
    with pytest.raises(UsageError, match=r"argument of torch.float64, .* pass x.to\(torch.float32\)"):
        call(Weighs("linear"), X, weight.float(), False)


class Weighted(nn.Module):
    """Weighs states by a softmax of integers that it makes of ids, which torch refuses."""

    kind = torch.int64

    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(3, 4), nn.GRU(4, 4, batch_first=True)

    def forward(self, ids):
        weights = torch.softmax((ids != 0).to(self.kind), dim=-1)
        return (self.rnn(self.embed(ids))[0] * weights[..., None]).sum(dim=1)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_ids_are_not_blamed_for_an_error_of_another_layer_in_a_container(call):
    ids = torch.tensor([[1, 2, 1]], device="cpu")
    model = nn.Sequential(Weighted(), nn.Linear(4, 2))
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        call(model, ids)
    model[0].kind = torch.float32
    assert call(model, ids) is not None  # the control


def test_weights_of_a_parametrized_layer_are_its_own():
    weighted = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3, bias=False))
    model = nn.Sequential(weighted, Model("none"))
    with pytest.raises(UsageError, match=r"argument of torch.int64, .* pass x.to\(torch.float32\)$"):
        unrolled.account(model, X.long())
    assert unrolled.account(model, X.float()).closes  # the remedy


class Mixed(nn.Module):
    """Has parts of two types."""

    def __init__(self, first=None, rnn=None, head=None):
        super().__init__()
        self.first, self.rnn = first or nn.Linear(3, 3), rnn or nn.GRU(3, 5, batch_first=True)
        self.head = head or nn.Linear(5, 2)

    def forward(self, x):
        return self.head(self.rnn(self.first(x))[0][:, -1])


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(3, 3), nn.Parameter(torch.ones(3, dtype=torch.float64))

    def forward(self, x):
        return self.layer(x) * self.scale


def _attention():
    attends = Attends()
    attends.inner.out_proj.double()
    return attends


BOTH = "in a model with weights of torch.float32 and torch.float64"
OF_TWO_TYPES = {
    "a layer of two": (
        lambda: Mixed(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3).double())),
        rf"first\.1 \(Linear\) computes in torch\.float64, and reads numbers of torch\.float32, {BOTH}",
    ),
    "the network": (
        lambda: Mixed(rnn=nn.GRU(3, 5, batch_first=True).double()),
        rf"rnn \(GRU\) computes in torch\.float64, and reads numbers of torch\.float32, {BOTH}",
    ),
    "the head": (
        lambda: Mixed(head=nn.Linear(5, 2).double()),
        rf"head \(Linear\) computes in torch\.float64, and reads numbers of torch\.float32, {BOTH}",
    ),
    "a parameter": (
        lambda: Mixed(Scaled()),
        rf"rnn \(GRU\) computes in torch\.float32, and reads numbers of torch\.float64, {BOTH}",
    ),
    "within a layer": (
        lambda: Mixed(_attention()),
        r"first\.inner \(MultiheadAttention\) has weights of torch\.float32 and torch\.float64",
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("name", OF_TWO_TYPES)
def test_the_part_of_another_type_is_named_in_a_model_of_two_types(call, name):
    made, said = OF_TWO_TYPES[name]
    with pytest.raises(UsageError, match=said + r".*convert the model: model\.to\(torch\.float32\)") as told:
        call(made(), X.float())
    assert "pass x" not in str(told.value)  # the numbers of the argument have the type that is expected of them
    assert call(made().to(torch.float32), X.float()) is not None  # the remedy


class OfWords(Mixed):
    def __init__(self, **parts):
        super().__init__(nn.Embedding(7, 3), **parts)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_part_of_another_type_is_named_in_a_model_of_ids(call):
    ids, network = torch.tensor([[1, 2, 3]], device="cpu"), nn.GRU(3, 5, batch_first=True).double()
    for model, part in (
        (OfWords(head=nn.Linear(5, 2).double()), r"head \(Linear\)"),
        (OfWords(rnn=network), r"rnn \(GRU\)"),
    ):
        said = rf"{part} computes in torch\.float64, and reads numbers of torch\.float32, .*: model\.to\(torch\.float32"
        with pytest.raises(UsageError, match=said):
            call(model, ids)
        assert call(model.float(), ids) is not None  # the remedy


class OfTwoTypes(Mixed):
    """The control: its parts have two types on purpose, and read an argument each."""

    def __init__(self):
        super().__init__()
        self.other = nn.Linear(3, 3).double()

    def forward(self, x, y, counts=False):
        weights = torch.softmax(torch.arange(4), dim=0) if counts else torch.ones(4)
        return super().forward(weights[None, :, None] * self.first(x) + self.other(y).float())


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_argument_that_a_part_of_another_type_reads(call):
    assert call(OfTwoTypes(), X.float(), X) is not None
    said = r"other \(Linear\) computes in torch\.float64, and reads an argument of torch\.float32, "
    with pytest.raises(UsageError, match=said + r".*pass x\.to\(torch\.float64\) if it needs both types$"):
        call(OfTwoTypes(), X.float(), X.float())
    said = r"first \(Linear\) computes in torch\.float32, and reads an argument of torch\.float64, "
    with pytest.raises(UsageError, match=said + r".*; pass x\.to\(torch\.float32\)$"):
        call(OfTwoTypes(), X, X.float())
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):  # another mistake of such a model
        call(OfTwoTypes(), X.float(), X, True)
