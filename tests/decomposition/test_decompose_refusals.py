"""What cannot be opened is refused in one line that names what came and what was expected."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import unrolled
from unrolled.errors import NonFiniteError, ParityError, ShapeError, UnrolledError, UsageError

B, T, E, D = 3, 6, 4, 5


class Doubled(nn.GRU):
    """A network that is not what it says it is."""

    def forward(self, input, hx=None):
        out, h = super().forward(input, hx)
        return 2 * out, h


def test_a_network_that_is_not_itself_is_refused():
    rnn = Doubled(E, D)
    with pytest.raises(ParityError, match=r"our states differ from the Doubled's own by .*; expected at most"):
        unrolled.decompose(rnn, torch.randn(T, 1, E))
    assert unrolled.decompose(nn.GRU(E, D), torch.randn(T, 1, E)).parity < 1e-6


def nan_weight(rnn):
    rnn.weight_ih_l0.data[0, 0] = float("nan")


X = torch.zeros(B, T, E)
BAD = [
    (lambda r: unrolled.decompose(r, torch.zeros(B, T, E + 1)), ShapeError, r"expected \(batch, time, 4\)"),
    (lambda r: unrolled.decompose(r, torch.zeros(E)), ShapeError, "inputs have shape"),
    (lambda r: unrolled.decompose(r, torch.zeros(B, 0, E)), ShapeError, "expected at least one token$"),
    (lambda r: unrolled.decompose(r, torch.zeros(0, T, E)), ShapeError, "0 sequences of 6 tokens; .* one sequence$"),
    (lambda r: unrolled.decompose(r, X, [7, 1, 1]), UsageError, "lengths run from 1 to 7; expected 1 to 6"),
    (lambda r: unrolled.decompose(r, X, [0, 1, 1]), UsageError, "lengths run from 0 to 1"),
    (lambda r: unrolled.decompose(r, X, [1, 1]), ShapeError, r"expected \(3,\) whole numbers"),
    (lambda r: unrolled.decompose(r, X, torch.tensor([1.0, 1, 1])), ShapeError, "whole numbers"),
    (
        lambda r: unrolled.decompose(r, X, state=torch.zeros(1, B, D + 1)),
        ShapeError,
        r"h_0 has shape \(1, 3, 6\); expected \(1, 3, 5\)",
    ),
    (lambda r: unrolled.decompose(r, X, state=(X, X)), ShapeError, "expected h_0"),
    (
        lambda r: unrolled.decompose(r, X, state=torch.full((1, B, D), torch.inf)),
        NonFiniteError,
        "h_0 hold NaN",
    ),
    (lambda r: unrolled.decompose(r, torch.full((B, T, E), torch.nan)), NonFiniteError, "inputs hold NaN"),
    (lambda r: (nan_weight(r), unrolled.decompose(r, X)), NonFiniteError, "weights weight_ih_l0 hold NaN"),
    (lambda r: unrolled.decompose(r, X.numpy()), UsageError, "the inputs are an ndarray; expected a tensor"),
    (lambda r: unrolled.decompose(r, X.tolist()), UsageError, "the inputs are a list; expected a tensor"),
    (lambda r: unrolled.decompose(r, X.double()), UsageError, "inputs are torch.float64; expected torch.float32"),
    (lambda r: unrolled.decompose(r, X.long()), UsageError, "inputs are torch.int64; expected torch.float32"),
    (lambda r: unrolled.decompose(r, X, "path"), ShapeError, r"lengths are 'path'; expected \(3,\) whole numbers"),
    (
        lambda r: unrolled.decompose(r, X, ["a", "b", "c"]),
        ShapeError,
        r"lengths are \['a', .*; expected \(3,\) whole numbers",
    ),
    (
        lambda r: unrolled.decompose(r, X, torch.ones(3).bool()),
        ShapeError,
        r"torch.bool; expected \(3,\) whole numbers",
    ),
    (
        lambda r: unrolled.decompose(r, X, state=torch.zeros(1, B, D).double()),
        UsageError,
        "the numbers of h_0 are torch.float64; expected torch.float32",
    ),
    (
        lambda r: unrolled.decompose(r, X, state=torch.zeros(1, B, D).numpy()),
        ShapeError,
        r"h_0 is an ndarray; expected a tensor of shape \(1, 3, 5\)",
    ),
    (
        lambda _: unrolled.decompose(nn.LSTM(E, D), X, state=(torch.zeros(1, T, D),) * 3),
        ShapeError,
        r"the state is a tuple of 3; expected \(h_0, c_0\)",
    ),
    (lambda r: unrolled.decompose(r, X, max_order=2.5), UsageError, "max_order is 2.5; expected a whole number"),
    (lambda r: unrolled.decompose(r, X, max_order="3"), UsageError, "max_order is '3'; expected a whole number"),
    (lambda r: unrolled.decompose(r, X, tolerance="x"), UsageError, "tolerance is 'x'; expected a positive number"),
    (lambda r: unrolled.decompose(r, X).vectors("backward"), UsageError, "direction is 'backward'; expected 0 to 0"),
    (lambda r: unrolled.decompose(r, X).scores("not"), UsageError, r"weight is a str; expected numbers of shape"),
    (lambda r: unrolled.decompose(r, X).scores(torch.ones(D) * 1j), UsageError, "weight is torch.complex64"),
    (lambda _: unrolled.decompose(lambda x: x, X), UsageError, "the network is a function; expected torch.nn.RNN"),
    (lambda r: unrolled.decompose(r, X, expansion="opperating"), UnrolledError, "did you mean 'operating'"),
    (lambda r: unrolled.decompose(r, X, expansion=None), UsageError, "the expansion is a NoneType; expected a name"),
    (lambda r: unrolled.decompose(r, X, max_order=0), UsageError, "max_order is 0"),
    (lambda r: unrolled.decompose(r, X, tolerance=0.0), UsageError, "tolerance is 0.0"),
    (lambda r: unrolled.decompose(r, X, tolerance=float("nan")), UsageError, "tolerance is nan"),
    (lambda r: unrolled.decompose(r, X).vectors(1), UsageError, "direction is 1; expected 0 to 0"),
    (
        lambda r: unrolled.decompose(r, X).scores(torch.zeros(2, D + 1)),
        ShapeError,
        r"expected \(classes, 5\)",
    ),
    (
        lambda r: unrolled.decompose(r, X).scores(torch.full((2, D), torch.nan)),
        NonFiniteError,
        "weight holds NaN or infinity",
    ),
    (
        lambda r: unrolled.decompose(r, X).final_scores(torch.full((D,), torch.inf)),
        NonFiniteError,
        "weight holds NaN or infinity",
    ),
    (lambda _: unrolled.decompose(nn.Linear(2, 2), X), UsageError, "the network is a Linear; expected torch.nn.RNN"),
    (
        lambda r: unrolled.decompose(r, pack_padded_sequence(X, [6, 6, 6], batch_first=True), [6, 6, 6]),
        UsageError,
        "lengths were given with a packed sequence",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_input_is_named_in_one_line(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call(nn.GRU(E, D, batch_first=True))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint64])
def test_lengths_of_any_whole_type_are_lengths(dtype):
    rnn, x = nn.GRU(E, D, batch_first=True), torch.randn(B, T, E)
    found = unrolled.decompose(rnn, x, torch.tensor([6, 2, 4]).to(dtype))
    assert torch.equal(found.vectors(), unrolled.decompose(rnn, x, [6, 2, 4]).vectors())
    assert not torch.equal(found.vectors(), unrolled.decompose(rnn, x).vectors())


def test_a_weight_may_be_an_array_or_a_list():
    found, weight = unrolled.decompose(nn.GRU(E, D), torch.randn(T, B, E)), torch.randn(2, D)
    for given in (weight.numpy(), weight.tolist(), weight.double()):
        torch.testing.assert_close(found.scores(given), found.scores(weight))
        torch.testing.assert_close(found.final_scores(given), found.final_scores(weight))


@pytest.mark.parametrize("packed", [False, True])
def test_the_first_infinite_number_of_the_inputs_is_named(packed):
    x, lengths = torch.zeros(3, 6, 2), torch.tensor([2, 6, 5])
    x[2, 1, 0], x[1, 4, 1], x[1, 5, 0] = torch.nan, torch.inf, torch.nan
    x[0, 2] = torch.nan if packed else 0.0  # padding
    given = nn.utils.rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False) if packed else x
    with pytest.raises(NonFiniteError, match=r"the first is number 1 of step 4 of sequence 1, counted from 0$"):
        unrolled.decompose(nn.GRU(2, 3, batch_first=True), given)


@pytest.mark.parametrize("transform", [torch.func.grad, torch.vmap, torch.func.jacfwd])
@pytest.mark.parametrize("of", ["inputs", "state", "weights"])
def test_transforms_in_which_derivatives_would_be_lost(transform, of):
    rnn, w = nn.GRU(E, D, batch_first=True), torch.ones(D)
    given = {
        "inputs": (X + 1, lambda each: unrolled.decompose(rnn, each)),
        "state": (torch.ones(1, B, D), lambda each: unrolled.decompose(rnn, X, state=each)),
        "weights": (rnn.weight_hh_l0.detach(), lambda each: with_weights(rnn, each)),
    }
    tensor, opened = given[of]
    with pytest.raises(UsageError, match=r"belongs to a transform of torch\.func .* outside of it"):
        transform(lambda each: opened(each).scores(w).nansum())(tensor[None] if transform is torch.vmap else tensor)
    # the control: a transform that does not meet these tensors
    assert torch.func.grad(lambda scale: scale * opened(tensor).scores(w).nansum())(torch.ones(())) != 0


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.jacfwd])
def test_detached_tensors_in_a_transform_are_constants_of_it(transform):
    rnn, w = nn.GRU(E, D, batch_first=True), torch.ones(D)

    def score(inputs):
        return unrolled.decompose(rnn, inputs).scores(w).nansum()

    found = transform(lambda x: x.sum() * score(x.detach()))(X)
    torch.testing.assert_close(found, score(X).expand(X.shape))
    twice = torch.func.grad(lambda y: transform(lambda x: score((x * y).detach()))(X).sum())
    with pytest.raises(UsageError, match=r"belongs to a transform of torch\.func"):  # the control
        twice(torch.ones(()))


def test_terms_beside_a_loss_that_is_differentiated_are_those_of_detached_tensors():
    rnn, w = nn.GRU(E, D, batch_first=True), torch.ones(D)

    def loss(x, given):
        return rnn(x)[0].square().sum(), unrolled.decompose(rnn, given(x)).scores(w)

    said = r"inputs belongs to a transform .*; pass inputs\.detach\(\) if you need no derivatives of the terms, or call"
    with pytest.raises(UsageError, match=said):
        torch.func.grad(lambda x: loss(x, lambda each: each), has_aux=True)(X)
    slope, terms = torch.func.grad(lambda x: loss(x, torch.detach), has_aux=True)(X)  # the remedy
    torch.testing.assert_close(terms, unrolled.decompose(rnn, X).scores(w))
    torch.testing.assert_close(slope, torch.func.grad(lambda x: rnn(x)[0].square().sum())(X))
    with pytest.raises(UsageError, match=r"transform of torch\.func") as told:  # the control: copies belong to vmap too
        torch.vmap(lambda x: unrolled.decompose(rnn, x).scores(w))(X[None])
    assert "detach" not in str(told.value)


class Opened(nn.Module):
    def __init__(self, rnn):
        super().__init__()
        self.rnn = rnn

    def forward(self, inputs):
        return unrolled.decompose(self.rnn, inputs)


def with_weights(rnn, weights):
    return torch.func.functional_call(Opened(rnn), {"rnn.weight_hh_l0": weights}, (X,))
