"""Properties of single encoders: sums, word order, attention to later tokens, positions, windows."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from reference_encoders import TABLES
from toy_encoders import CAUSAL, LENGTHS, PUBLISHED, B, T, inputs, made
from unrolled.cells import CELLS
from unrolled.composition.multiplicative import MMEncoder
from unrolled.composition.transformer import TransformerEncoder
from unrolled.composition.vector_additive import VAWEncoder
from unrolled.composition.windows import CNNEncoder


@pytest.mark.parametrize("x", ["e", "g", "l", "me"])
def test_mvma_is_the_affine_cell_run_as_a_recurrence(x):
    encoder = made(f"mvma_{x}")
    cell = CELLS.get(f"mvma_{x}")(3, 4).double()
    cell.load_state_dict({key.removeprefix("cell."): value for key, value in encoder.state_dict().items()})
    tokens = inputs(encoder)
    state, states = cell.initial_state(B), []
    for t in range(T):
        state = cell.step(tokens[:, t], state)
        states.append(cell.hidden(state))
    torch.testing.assert_close(encoder(tokens)[0], torch.stack(states, dim=1))


@pytest.mark.parametrize("x", ["e", "g", "l"])
def test_mvm_and_mvma_differ_in_nothing_but_the_sum(x):
    longest, total = made(f"mvm_{x}"), made(f"mvma_{x}")
    longest.load_state_dict(total.state_dict())
    tokens = inputs(total)
    torch.testing.assert_close(longest.ngrams(tokens), total.ngrams(tokens))
    torch.testing.assert_close(longest(tokens)[0][:, 0], total(tokens)[0][:, 0])
    assert (longest(tokens)[0] - total(tokens)[0]).abs().max() > 1e-3


def swapped(x):
    """Swap the first two tokens."""
    return torch.cat((x[:, 1:2], x[:, :1], x[:, 2:]), dim=1)


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name != "vm"])
def test_order_matters(name):
    encoder = made(name, **({"window": T} if name == "va_w" else {}))
    x = inputs(encoder, time=3)
    final, other = encoder(x)[0][:, -1], encoder(swapped(x))[0][:, -1]
    assert (final - other).abs().max() > 1e-4


def test_products_of_vectors_commute():
    encoder = made("vm")
    x = inputs(encoder, time=3)
    torch.testing.assert_close(encoder(x)[0][:, -1], encoder(swapped(x))[0][:, -1])


@pytest.mark.parametrize("name", CAUSAL)
def test_a_context_does_not_depend_on_later_tokens(name):
    encoder = made(name)
    x = inputs(encoder)
    later = x.clone()
    later[:, 3:] += 1
    assert torch.equal(encoder(x)[0][:, :3], encoder(later)[0][:, :3])
    assert not torch.equal(encoder(x)[0][:, 3:], encoder(later)[0][:, 3:])


def test_a_transformer_attends_to_later_tokens_unless_it_is_causal():
    x = torch.randn(B, T, 3).double()
    later = x.clone()
    later[:, 3:] += 1
    for causal in (True, False):
        encoder = made("transformer", causal=causal)
        same = torch.allclose(encoder(x)[0][:, :3], encoder(later)[0][:, :3])
        assert same == causal
        padded, alone = encoder(x, LENGTHS)[0], encoder(x[1, :2])[0]
        torch.testing.assert_close(padded[1, :2], alone)


@pytest.mark.parametrize("size", [4, 5])
def test_positions_are_sines_and_cosines(size):
    found = TransformerEncoder(3, size, heads=1).positions(7, torch.zeros((), dtype=torch.float64))[:, 0]
    for t in range(7):
        for k in range(size):
            angle = t / 10000 ** ((k - k % 2) / size)
            assert float(found[t, k]) == pytest.approx(math.cos(angle) if k % 2 else math.sin(angle))


@pytest.mark.parametrize("width", [1, 2, 3, 9])
def test_a_convolution_is_a_product_with_each_window_and_a_maximum(width):
    encoder = CNNEncoder(3, 4, width=width).double()
    W = encoder.filters.weight.detach().permute(0, 2, 1).flatten(1)
    x = torch.randn(B, T, 3).double()
    outputs, final = encoder(x, LENGTHS)
    for b, n in enumerate(LENGTHS):
        nothing = torch.zeros(width - 1, 3).double()
        padded = torch.cat((nothing, x[b, :n], nothing))
        windows = [padded[i : i + width].flatten() for i in range(n + width - 1)]
        p = torch.stack([torch.tanh(W @ window + encoder.filters.bias) for window in windows])
        torch.testing.assert_close(outputs[b, :n], p[:n])
        torch.testing.assert_close(final[0, b], p.amax(dim=0))


@pytest.mark.parametrize("window", [1, 2, 9])
def test_a_window_may_be_longer_than_the_sequence(window):
    encoder = VAWEncoder(3, 4, window=window).double()
    x = inputs(encoder)
    weights = {key: value.detach() for key, value in encoder.state_dict().items()}
    for b in range(B):
        table = TABLES["va_w"](weights, x[b])
        torch.testing.assert_close(encoder.ngrams(x)[b], table)
        torch.testing.assert_close(encoder(x)[0][b], table.sum(dim=1))


def test_distances_beyond_the_sequence_cost_nothing():
    flops = []
    for window in (T, 50):
        encoder = VAWEncoder(3, 4, window=window)
        with FlopCounterMode(display=False) as counter:
            encoder(torch.randn(B, T, 3))
        flops.append(counter.get_total_flops())
    assert flops[0] == flops[1]


def test_matrices_are_initialised_near_the_identity():
    encoder, embedding = MMEncoder(16, 16), nn.Embedding(50, 16)
    encoder.initialise(embedding)
    words = torch.arange(5)[None]
    far, _ = encoder(embedding(words))
    assert (far[0, -1].view(4, 4) - torch.eye(4)).abs().max() < 0.1
    nn.init.normal_(embedding.weight, std=1e-3)  # control
    assert encoder(embedding(words))[0][0, -1].abs().max() < 1e-6
