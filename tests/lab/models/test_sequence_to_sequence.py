"""Encoder and decoder, with and without each optional part."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.cells import CELLS, recurrent
from unrolled.errors import ShapeError, UnknownNameError, UsageError
from unrolled.lab.models.sequence_to_sequence import LuongAttention, SequenceToSequence

SOURCE, TARGET, E, H = 20, 15, 4, 8  # a multiple of E, for the cells whose state is made of slots
LENGTHS = torch.tensor([3, 6, 1, 4])
TORCH = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def network(name: str, inputs: int, layers: int = 1, bidirectional: bool = False) -> nn.Module:
    if name in TORCH:
        return TORCH[name](inputs, H, layers, bidirectional=bidirectional, batch_first=True)
    return recurrent(name, inputs, H, layers, bidirectional, batch_first=True)


def made(name="gru", *, separate=True, fed=True, layers=1, bidirectional=False, attention=False, dropout=0.0):
    torch.manual_seed(0)
    size = H * (2 if bidirectional else 1)
    both = E + size
    model = SequenceToSequence(
        nn.Embedding(SOURCE, E),
        network(name, both if fed and not separate else E, layers, bidirectional),
        network(name, both if fed else 1, layers) if separate else None,
        nn.Embedding(TARGET, E) if fed else None,
        nn.Linear(H, TARGET),
        LuongAttention(H, size) if attention else None,
        dropout,
    )
    return model.double().eval()


def words(rows: int, time: int, count: int, seed: int) -> Tensor:
    return torch.randint(1, count, (rows, time), generator=torch.Generator().manual_seed(seed))


SOURCES, PREVIOUS = words(4, 6, SOURCE, 1), words(4, 5, TARGET, 2)
SWITCHES = ("separate", "fed", "bidirectional", "attention")
POSITIONS = [on for on in itertools.product((False, True), repeat=4) if on[0] or not on[2]]
GRID = pytest.mark.parametrize(
    "parts",
    [  # quick: every position of the switches with two of the networks, once with one layer and once with two
        pytest.param(
            {"name": name, "layers": layers, **dict(zip(SWITCHES, on, strict=True))},
            marks=[] if (first + layers + place) % 4 == 0 else pytest.mark.slow,
        )
        for first, name in enumerate(("rnn", "gru", "lstm", "mlstm"))
        for layers in (1, 2)
        for place, on in enumerate(POSITIONS)
    ],
    ids=lambda parts: "-".join(str(part) for part in parts.values()),
)


@GRID
def test_a_padded_source_says_what_it_says_alone(parts):
    model = made(**parts)
    together = model(SOURCES, PREVIOUS, LENGTHS)
    alone = [model(SOURCES[i : i + 1, :n], PREVIOUS[i : i + 1]) for i, n in enumerate(LENGTHS.tolist())]
    assert together.shape == (4, 5, TARGET)
    torch.testing.assert_close(together, torch.cat(alone), rtol=0, atol=1e-12)


@GRID
def test_what_stands_in_the_padding_changes_nothing_and_without_lengths_it_does(parts):
    model = made(**parts)
    others = SOURCES.masked_fill(torch.arange(6) >= LENGTHS[:, None], 7)
    assert torch.equal(model(SOURCES, PREVIOUS, LENGTHS), model(others, PREVIOUS, LENGTHS))
    assert not torch.allclose(model(SOURCES, PREVIOUS), model(others, PREVIOUS))


@GRID
def test_word_by_word_it_says_what_it_says_at_once(parts):
    model = made(**parts)
    at_once = model(SOURCES, PREVIOUS, LENGTHS)
    decoding = model.begin(SOURCES, LENGTHS)
    for t in range(PREVIOUS.shape[1]):
        logits, decoding = model.step(PREVIOUS[:, t], decoding)
        torch.testing.assert_close(logits, at_once[:, t], rtol=0, atol=1e-12)


@GRID
def test_a_word_hangs_on_those_before_it_alone_and_only_a_fed_decoder_hears_them(parts):
    model = made(**parts)
    others = PREVIOUS.clone()
    others[:, 2] = TARGET - PREVIOUS[:, 2]  # another word, as no index is half of 15
    before, after = model(SOURCES, PREVIOUS, LENGTHS), model(SOURCES, others, LENGTHS)
    assert torch.equal(before[:, :2], after[:, :2])
    assert torch.equal(before[:, 2:], after[:, 2:]) is not parts["fed"]


@pytest.mark.parametrize("name", CELLS.names())
@pytest.mark.parametrize("separate", [False, True])
def test_every_cell_of_the_zoo_can_speak(name, separate):
    model = made(name, separate=separate, fed=False, bidirectional=separate)
    at_once = model(SOURCES, PREVIOUS, LENGTHS)
    logits, decoding = model.step(PREVIOUS[:, 0], model.begin(SOURCES, LENGTHS))
    torch.testing.assert_close(logits, at_once[:, 0], rtol=0, atol=1e-12)
    logits, _ = model.step(PREVIOUS[:, 1], decoding)
    torch.testing.assert_close(logits, at_once[:, 1], rtol=0, atol=1e-12)


def test_rows_can_be_taken_over_from_a_decoding():
    model = made("lstm", layers=2, bidirectional=True, attention=True)
    rows = torch.tensor([2, 0, 2])
    decoding = model.begin(SOURCES, LENGTHS)
    chosen, _ = model.step(PREVIOUS[rows, 0], decoding.select(rows))
    torch.testing.assert_close(chosen, model.step(PREVIOUS[:, 0], decoding)[0][rows], rtol=0, atol=1e-12)


# The equations, implemented separately


def gru(weights: dict[str, Tensor], x: Tensor, h: Tensor) -> Tensor:
    """Compute one step, with PyTorch's order of the gates."""
    given = weights["weight_ih_l0"] @ x + weights["bias_ih_l0"]
    kept = weights["weight_hh_l0"] @ h + weights["bias_hh_l0"]
    (ir, iz, inew), (hr, hz, hnew) = given.split(H), kept.split(H)
    r, z = torch.sigmoid(ir + hr), torch.sigmoid(iz + hz)
    return (1 - z) * torch.tanh(inew + r * hnew) + z * h


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize("attention", [False, True])
def test_it_is_what_the_notes_write(separate, fed, attention):
    model = made(separate=separate, fed=fed, attention=attention)
    first = dict(model.encoder.named_parameters())
    second = dict(model.decoder.named_parameters()) if separate else first
    said = model(SOURCES, PREVIOUS)
    for row in range(4):
        h, states = torch.zeros(H, dtype=torch.float64), []
        for word in SOURCES[row]:
            x = model.source.weight[word]
            h = gru(first, torch.cat((x, torch.zeros(H))) if fed and not separate else x, h)
            states.append(h)
        c = h
        for t, word in enumerate(PREVIOUS[row]):
            nothing = torch.zeros(1 if separate else E, dtype=torch.float64)
            h = gru(second, torch.cat((model.target.weight[word], c)) if fed else nothing, h)
            out = h
            if attention:
                weights = torch.stack([h @ model.attention.score.weight @ s for s in states]).softmax(0)
                seen = sum(a * s for a, s in zip(weights, states, strict=True))
                out = torch.tanh(model.attention.combine.weight @ torch.cat((seen, h)))
            torch.testing.assert_close(said[row, t], model.head(out), rtol=0, atol=1e-12)


def test_the_decoder_of_a_two_way_encoder_begins_with_a_map_of_both_last_states():
    model = made("lstm", layers=2, bidirectional=True)
    _, finals = model.encoder(model.source(SOURCES))
    begun = model.begin(SOURCES).state
    for map_, part, state in zip(model.bridge.maps, finals, begun, strict=True):
        for layer in range(2):
            expected = map_(torch.cat((part[2 * layer], part[2 * layer + 1]), dim=1))
            torch.testing.assert_close(state[layer], expected, rtol=0, atol=1e-12)
    assert torch.equal(model.begin(SOURCES).last, torch.cat((finals[0][2], finals[0][3]), dim=1))


def test_dropout_acts_in_training_only():
    model = made(dropout=0.5)
    assert torch.equal(model(SOURCES, PREVIOUS), model(SOURCES, PREVIOUS))
    model.train()
    assert not torch.equal(model(SOURCES, PREVIOUS), model(SOURCES, PREVIOUS))


def test_every_weight_learns():
    for on in itertools.product((False, True), repeat=4):
        if on[0] or not on[2]:
            model = made("lstm", layers=2, **dict(zip(SWITCHES, on, strict=True)))
            model(SOURCES, PREVIOUS, LENGTHS).square().sum().backward()
            assert all(p.grad is not None for p in model.parameters()), on


# Explanations


def strong(name="gru", **parts):
    """Build a model with large states, so that n-grams matter and a first-order expansion is inaccurate."""
    model = made(name, **parts)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2)
    return model.float()


def word(position: int, index: int):
    def target(logits: Tensor) -> Tensor:
        return logits[:, position, index]

    return target


@pytest.mark.quick_diagonal(3)  # quick: every model, both sides
@pytest.mark.parametrize("name", ["gru", "lstm", "mlstm"])
@pytest.mark.parametrize("parts", [{}, {"bidirectional": True}, {"attention": True}, {"layers": 2}], ids=str)
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_the_logit_of_a_word_opens_on_either_side(name, parts, side):
    model = strong(name, **parts)
    source, previous = SOURCES[:1], PREVIOUS[:1]
    found = unrolled.explain(model, source, previous, target=word(2, 7), rnn=side)
    ledger = found.ledger
    logit = model(source, previous)[0, 2, 7].item()
    assert ledger.logit == pytest.approx(logit, abs=1e-5)
    assert ledger.ngrams + ledger.initial + ledger.bias + ledger.remainder == pytest.approx(ledger.logit, abs=1e-12)
    assert abs(ledger.remainder) < 1e-5 < 1e-3 < abs(ledger.ngrams)
    read = source if side == "encoder" else previous
    assert found.tokens == tuple(map(str, read[0].tolist()))


@pytest.mark.parametrize("fed", [False, True])
def test_one_network_for_both_opens_as_the_reader_of_the_source(fed):
    model = strong(separate=False, fed=fed)
    found = unrolled.explain(model, SOURCES[:1], PREVIOUS[:1], target=word(3, 7))
    assert found.tokens == tuple(map(str, SOURCES[0].tolist()))
    assert abs(found.ledger.remainder) < 1e-5 < 1e-3 < abs(found.ledger.ngrams)
    with pytest.raises(UnknownNameError, match="unknown recurrent network 'decoder'"):
        unrolled.explain(model, SOURCES[:1], PREVIOUS[:1], target=word(3, 7), rnn="decoder")


def test_an_expansion_that_is_not_exact_leaves_a_remainder():
    """Control of the ledgers above."""
    found = unrolled.explain(strong(), SOURCES[:1], PREVIOUS[:1], target=word(2, 7), rnn="encoder", expansion="zero")
    assert abs(found.ledger.remainder) > 1e-3


def test_a_padded_batch_is_opened_sentence_by_sentence():
    model = strong("gru", bidirectional=True)
    together = unrolled.explain_batch(model, SOURCES, PREVIOUS, LENGTHS, target=word(1, 7), rnn="encoder")
    for row, n in enumerate(LENGTHS.tolist()):
        alone = unrolled.explain(
            model, SOURCES[row : row + 1, :n], PREVIOUS[row : row + 1], target=word(1, 7), rnn="encoder"
        )
        assert together[row].ledger.ngrams == pytest.approx(alone.ledger.ngrams, abs=1e-5)


# Invalid input


@pytest.mark.parametrize(
    ("networks", "message"),
    [
        ((nn.GRU(E, H), None), "the encoder has batch_first=False; expected True"),
        ((nn.GRU(E, H, batch_first=True), nn.GRU(E + H, H)), "the decoder has batch_first=False; expected True"),
        (
            (nn.GRU(E, H, bidirectional=True, batch_first=True), None),
            "the encoder is bidirectional and there is no decoder",
        ),
        (
            (network("gru", E), network("gru", E + H, bidirectional=True)),
            "the decoder is bidirectional with num_layers=1; expected .* num_layers=1",
        ),
        (
            (network("gru", E, 2), network("gru", E + H)),
            "the decoder is one-directional with num_layers=1; expected .* num_layers=2",
        ),
    ],
)
def test_networks_that_do_not_fit_are_refused(networks, message):
    with pytest.raises(UsageError, match=message):
        SequenceToSequence(nn.Embedding(SOURCE, E), *networks, nn.Embedding(TARGET, E), nn.Linear(H, TARGET))


@pytest.mark.parametrize(
    ("source", "previous", "lengths", "error", "message"),
    [
        (SOURCES[0], PREVIOUS[:6], None, ShapeError, r"expected \(6, positions\), one row for each source"),
        (SOURCES, PREVIOUS[:3], None, ShapeError, r"shape \(3, 5\); expected \(4, positions\)"),
        (SOURCES[:, :0], PREVIOUS, None, ShapeError, r"source words have shape \(4, 0\)"),
        (SOURCES, PREVIOUS, torch.tensor([6, 6, 0, 6]), UsageError, "lengths are between 0 and 6; expected 1 to 6"),
    ],
)
def test_inputs_that_cannot_be_are_refused(source, previous, lengths, error, message):
    with pytest.raises(error, match=message):
        made()(source, previous, lengths)
