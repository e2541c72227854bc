"""The remainder over kinds, layers, directions, poolings, heads, types, large weights and long texts."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

import unrolled
from sizes_of_cells import SLOTS
from unrolled.cells import CELLS, recurrent
from unrolled.held_forward import rule
from unrolled.held_forward.mode import RULES
from whole_model_zoo import WORDS, Classifier, D, E, ids

KINDS = [nn.RNN, nn.GRU, nn.LSTM]


class Reads(nn.Module):
    """Reads vectors of tokens by a function; nothing else moves its output."""

    def __init__(self, read, dtype):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head, self.read = nn.Embedding(WORDS, E), nn.Linear(E, 3, bias=False), read
        self.to(dtype)

    def forward(self, tokens):
        return self.head(self.read(self.embed(tokens)).mean(1))


def squared(x):
    return x * torch.tanh(x)


def scaled(model, scale):
    for parameter in model.rnn.parameters():
        parameter.data.mul_(scale)
    return model


def gap(found):
    """The largest remainder, relative to the largest movement: that of one example may be zero by chance."""
    tiny = torch.finfo(found.output.dtype).tiny  # behind a relu that is flat nothing moves
    return float(found.remainder.abs().max() / found.movement.abs().max().clamp_min(tiny))


@pytest.mark.quick_diagonal(4)  # quick: every network, every pooling with its head
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(
    ("pool", "head"), [("last", "linear"), ("mean", "mlp"), ("max", "norm"), ("attention", "gated")]
)
def test_single_precision(kind, layers, both, pool, head):
    found = unrolled.account(scaled(Classifier(kind, layers, both, pool, head), 2), ids(3, 7), target=1)
    assert found.output.dtype == torch.float32
    assert gap(found) < 1e-5
    assert found.closes


@pytest.mark.parametrize("coarse", [torch.float32, torch.float16])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_part_in_a_coarser_type_closes_by_its_rounding(dtype, coarse):
    def rounded(x):
        return (x.to(coarse) * torch.tanh(x).to(coarse)).to(dtype)

    found, fine = (unrolled.account(Reads(read, dtype), ids(3, 7), target=1) for read in (rounded, squared))
    assert (found.coarsest, fine.coarsest) == (coarse, dtype)
    assert found.closes
    assert float(found.remainder.abs().max()) <= 4 * torch.finfo(coarse).eps * float(found.output.abs().max())
    if dtype == torch.float64:
        assert not replace(found, coarsest=dtype).closes  # the control: it is more than the output's own rounding


def test_a_type_that_is_too_coarse_is_named():
    def rounded(x):
        return (x.bfloat16() * torch.tanh(x).bfloat16()).double()

    found = unrolled.account(Reads(rounded, torch.float64), ids(3, 7), target=1)
    assert float((found.remainder / found.movement).abs().max()) > 1e-3
    assert not found.closes
    assert "rounding remains; use a finer type where the model computes in torch.bfloat16" in found.notes[0]


def test_what_is_lost_in_a_coarser_type_does_not_close():
    def lost(x):
        return torch.special.bessel_j0(x.half().float()).double()

    @rule("special_bessel_j0")
    def half(call):
        x = call.args[0]
        return x * (0.5 * call.held() / x.detach()) + 0.5 * call.held()  # which no row holds

    try:
        found = unrolled.account(Reads(lost, torch.float64), ids(3, 7), target=1)
    finally:
        del RULES["special_bessel_j0"]
    assert not found.closes
    assert "more than rounding" in found.notes[0]


@pytest.mark.parametrize("name", [name for name in CELLS.names() if name not in SLOTS])
def test_single_precision_of_every_cell(name):
    model = Classifier(pool="mean")
    model.rnn = recurrent(name, E, D, num_layers=2, batch_first=True)
    # with torch's small weights the inputs hardly move the output, whose own rounding is then the remainder
    assert gap(unrolled.account(scaled(model, 2), ids(3, 7), target=1)) < 1e-5


@pytest.mark.quick_diagonal(3)  # quick: every network, both scales, each option on and off
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("scale", [30.0, 100.0])
def test_large_weights_over_twenty_tokens(kind, layers, both, scale):
    found = unrolled.account(
        scaled(Classifier(kind, layers, both, "mean", "linear"), scale).double(), ids(4, 20), target=1
    )
    assert gap(found) < 1e-12
    assert found.closes


@pytest.mark.quick_diagonal(2)  # quick: every network, both scales
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_ordinary_weights_over_two_thousand_tokens(kind, scale):
    found = unrolled.account(
        scaled(Classifier(kind, 1, False, "mean", "linear"), scale).double(), ids(1, 2000), target=1
    )
    assert gap(found) < 1e-12
    assert found.closes
    assert not found.overgrown


def test_an_account_that_has_grown_is_not_called_exact_even_if_it_sums():
    """Weights times 30 over 400 tokens: Σ|c| is far beyond what float64 can add up."""
    torch.manual_seed(6)  # not every network with such weights grows
    model, tokens = scaled(Classifier(nn.GRU, 1, False, "mean", "linear"), 30).double(), ids(8, 400)
    found = unrolled.account(model, tokens, target=1)
    assert float(found.cancellation.max()) > 1e11
    assert found.overgrown
    assert not found.closes
    assert any("the account is not exact" in note for note in found.notes)
    assert any("times as large as their sum" in note for note in found.notes)
    quiet = unrolled.account(model, tokens, target=1, expansion="gates")  # the way round that the note names
    assert quiet.closes
    assert not quiet.overgrown


def test_an_output_near_zero_is_no_growth():
    model = Classifier(nn.GRU, 1, False, "mean", "linear").double()
    tokens = ids(1, 7)
    with torch.no_grad():
        model.head.bias[1] -= model(tokens)[0, 1]
    found = unrolled.account(model, tokens, target=1)
    assert float(found.output.abs().max()) < 1e-15
    assert found.closes
    assert not found.overgrown
