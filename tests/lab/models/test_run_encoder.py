"""Padding does not affect an encoder, and encoders that read ahead are detected."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence

from toy_encoders import PUBLISHED
from unrolled.cells import CELLS
from unrolled.errors import ShapeError, UsageError
from unrolled.lab.models.encoder_names import ENCODER_NAMES
from unrolled.lab.models.factory import make_encoder
from unrolled.lab.models.run_encoder import checked_lengths, reads_ahead, run_encoder
from unrolled.lab.models.settings import EncoderSettings

LENGTHS = torch.tensor([3, 5, 1])


def encoder(name, **parts):
    torch.manual_seed(0)
    hidden = 4 if name == "mm" else 8
    return make_encoder(EncoderSettings(encoder=name, hidden=hidden, dropout=0.0, **parts), 4).double().eval()


@pytest.mark.parametrize("name", ENCODER_NAMES)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_padded_sequence_is_read_as_it_is_alone(name, bidirectional):
    network = encoder(name, bidirectional=bidirectional)
    vectors = torch.randn(3, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    together = run_encoder(network, vectors, LENGTHS)
    for b, length in enumerate(LENGTHS.tolist()):
        alone = run_encoder(network, vectors[[b], :length])
        torch.testing.assert_close(together[[b], :length], alone, rtol=0, atol=1e-12)
        assert not together[b, length:].any()
    if bidirectional:  # control: without lengths the backward direction starts in the padding
        assert not torch.allclose(run_encoder(network, vectors)[0, :3], together[0, :3])


STACKED = [(name, 2) for name in ("rnn", "gru", "lstm", "mlstm")]


@pytest.mark.quick_diagonal(2)  # quick: every encoder
@pytest.mark.parametrize(("name", "layers"), [*((name, 1) for name in ENCODER_NAMES), *STACKED])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_what_learns_over_padding_learns_the_same(name, bidirectional, layers):
    still = {"dropout": 0.0} if name == "transformer" else {}
    network = encoder(name, bidirectional=bidirectional, layers=layers, options=still)
    vectors = torch.randn(3, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    weigh = torch.randn(3, 5, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    found, wanted = [], [vectors, *network.parameters()]
    for learning in (False, True):
        network.train(learning)
        read = run_encoder(network, vectors, LENGTHS)
        gradients = torch.autograd.grad((weigh * read).sum(), wanted, allow_unused=True)
        found.append([read, *(given for given in gradients if given is not None)])
    assert len(found[0]) > 1
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-12)
    if bidirectional:  # control: without lengths the backward direction starts in the padding
        assert not torch.allclose(run_encoder(network, vectors)[0, :3], read[0, :3])


def test_relu_and_projections_learn_over_padding():
    vectors = torch.randn(3, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for network in (
        torch.nn.RNN(4, 8, nonlinearity="relu", batch_first=True, bidirectional=True, bias=False),
        torch.nn.LSTM(4, 8, proj_size=3, num_layers=2, batch_first=True, bidirectional=True),
    ):
        judged = run_encoder(network.double().eval(), vectors, LENGTHS)
        torch.testing.assert_close(run_encoder(network.train(), vectors, LENGTHS), judged, rtol=0, atol=1e-12)


def test_only_what_is_ragged_is_packed_and_nothing_that_learns():
    network, inputs = encoder("gru"), []
    network.register_forward_hook(lambda _, args, __: inputs.append(type(args[0])))
    vectors = torch.zeros(3, 5, 4, dtype=torch.float64)
    for lengths in (None, torch.tensor([5, 5, 5]), LENGTHS):
        run_encoder(network, vectors, lengths)
    assert inputs == [torch.Tensor, torch.Tensor, PackedSequence]
    run_encoder(network.train(), vectors, LENGTHS)
    assert inputs[3] is torch.Tensor


def test_lengths_that_say_nothing_are_forgotten():
    assert checked_lengths(None, (3, 5)) is None
    assert checked_lengths(torch.tensor([5, 5, 5]), (3, 5, 2)) is None
    assert checked_lengths(LENGTHS, (3, 5)) is LENGTHS


@pytest.mark.parametrize(
    ("lengths", "error", "message"),
    [
        ([5, 5], ShapeError, r"shape \(2,\); expected \(3,\)"),
        ([0, 5, 5], UsageError, "between 0 and 5; expected 1 to 5"),
        ([6, 5, 5], UsageError, "between 5 and 6; expected 1 to 5"),
    ],
)
def test_lengths_that_cannot_be(lengths, error, message):
    with pytest.raises(error, match=message):
        checked_lengths(torch.tensor(lengths), (3, 5))


@pytest.mark.parametrize("name", ENCODER_NAMES)
def test_every_bidirectional_encoder_reads_ahead(name):
    assert reads_ahead(encoder(name, bidirectional=True), 4)


@pytest.mark.parametrize("name", ["rnn", *CELLS.names(), *PUBLISHED])
def test_only_attention_reads_ahead_in_one_direction(name):
    assert reads_ahead(encoder(name), 4) == (name == "transformer")


def test_a_causal_transformer_does_not_read_ahead_and_keeps_its_mode():
    network = encoder("transformer", options={"causal": True}).train()
    assert not reads_ahead(network, 4)
    assert network.training
