"""A model around a network of our cells is explained as one around torch.nn's."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import unrolled
from sizes_of_cells import SLOTS
from unrolled.cells import CELLS, recurrent
from unrolled.errors import UsageError
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.pooling import LastState

V, E, D, C, B, T = 12, 2, 4, 3, 3, 5
TOKENS = torch.randint(0, V, (B, T), generator=torch.Generator().manual_seed(0))
LENGTHS = torch.tensor([5, 3, 1])


class Model(nn.Module):
    """Reads outputs, h_n and the rest of the state, so that none of them can be replayed wrongly."""

    def __init__(self, name, way, layers=1, both=False):
        super().__init__()
        torch.manual_seed(3)
        self.embedding = nn.Embedding(V, E)
        self.rnn = recurrent(name, E, D, layers, both, batch_first=True)
        cell = self.rnn.cell(0, 0)
        self.way, top = way, 1 + both
        self.head = nn.Linear(top * (2 * D + cell.state_size - D), C)

    def forward(self, tokens, lengths, state=None):
        x = self.embedding(tokens)
        match self.way:
            case "packed":
                packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
                outputs, final = self.rnn(packed, state)
                outputs = pad_packed_sequence(outputs, batch_first=True)[0]
            case "lengths":
                outputs, final = self.rnn(input=x, hx=state, lengths=lengths)
        top = 1 + self.rnn.bidirectional
        ends = [part[-top:].transpose(0, 1).flatten(1) for part in (final if isinstance(final, tuple) else (final,))]
        return self.head(torch.cat((outputs.tanh().sum(1), *ends), dim=-1))


def shapes(name):
    return [(1, False), (1, True)] if name in SLOTS else [(1, False), (2, False), (2, True)]


@pytest.mark.slow_diagonal(3)
@pytest.mark.quick_diagonal(2)  # quick: every cell, packed or with lengths
@pytest.mark.parametrize("every_shape", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", ["packed", "lengths"])
@pytest.mark.parametrize("name", CELLS.names())
def test_the_ledger_closes(name, way, every_shape):
    for layers, both in shapes(name) if every_shape else shapes(name)[-1:]:
        model = Model(name, way, layers, both).double()
        found = unrolled.explain_batch(model, TOKENS, LENGTHS, target=1, expansion="operating")
        logits = model(TOKENS, LENGTHS)[:, 1].detach()
        for b, e in enumerate(found):
            assert e.ledger.logit == pytest.approx(float(logits[b]), abs=1e-12)
            assert abs(e.ledger.remainder) < 1e-8
            assert len(e) == int(LENGTHS[b])
            assert len(e.directions) == 1 + both
            assert abs(e.ledger.ngrams) > 1e-6


@pytest.mark.parametrize("name", ["mlstm", "mmlstm", "mi_gru"])
def test_a_batch_is_its_examples_and_a_state_has_its_own_entry(name):
    model = Model(name, "lengths", 2).double()
    together = unrolled.explain_batch(model, TOKENS, LENGTHS, target=0, expansion="operating")
    for b, n in enumerate(LENGTHS.tolist()):
        alone = unrolled.explain(model, TOKENS[b : b + 1, :n], LENGTHS[b : b + 1], target=0, expansion="operating")
        torch.testing.assert_close(alone.triangle.scores, together[b].triangle.scores, rtol=1e-6, atol=1e-9)
    cell = model.rnn.cell(0, 0)
    h, rest = torch.randn(2, B, D).double(), torch.rand(2, B, cell.state_size - D).double()
    state = (h, rest) if rest.shape[-1] else h
    for e in unrolled.explain_batch(model, TOKENS, LENGTHS, state, target=0, expansion="operating"):
        assert abs(e.ledger.initial) > 1e-3
        assert abs(e.ledger.remainder) < 1e-8


def test_zero_leaves_a_remainder():
    model = Model("mlstm", "lengths").double()
    with torch.no_grad():
        for parameter in model.rnn.parameters():
            parameter.mul_(2.5)
    found = unrolled.explain_batch(model, TOKENS, LENGTHS, target=1, expansion="zero")
    assert max(abs(e.ledger.remainder) for e in found) > 1e-3


def test_the_classifier_takes_any_of_them():
    encoder = recurrent("mmlstm", E, D, bidirectional=True, batch_first=True)
    model = Classifier(nn.Embedding(V, E), encoder, LastState(2), nn.Linear(encoder.output_size, C)).double()
    found = unrolled.explain_batch(model, TOKENS, LENGTHS, target=2)
    assert max(abs(e.ledger.remainder) for e in found) < 1e-5
    assert [len(e) for e in found] == LENGTHS.tolist()


def test_it_is_found_and_named_where_there_are_several():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.ours, self.theirs = recurrent("mrnn", E, D), nn.GRU(E, D)

        def forward(self, x):
            return self.ours(x)[0][-1] + self.theirs(x)[0][-1]

    x = torch.randn(T, 1, E)
    both = unrolled.explain(Two().double(), x.double(), target=1)
    assert [each.name for each in both.sequences] == ["ours", "theirs"]
    assert abs(both.ledger.remainder) < 1e-12
    found = unrolled.explain(Two(), x, rnn="ours", expansion="operating")
    assert abs(found.ledger.remainder) < 1e-5
    with pytest.raises(
        UsageError, match=r"no recurrent network in Linear; expected a torch.nn.RNN, GRU, LSTM or a cell"
    ):
        unrolled.explain(nn.Linear(2, 2), x)
