"""Recurrent networks of other libraries: subclasses, wrappers, weights that are computed when they are read."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import unrolled

V, E, D = 11, 4, 5
IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 0, 0]])
LENGTHS = torch.tensor([5, 3])


class Packs(nn.LSTM):
    """Takes lengths, packs by itself and returns its outputs alone."""

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(super().forward(packed)[0], batch_first=True)[0]


class TakesTimeFirst(nn.Module):
    """Holds an LSTM that reads time first, and returns a dictionary."""

    def __init__(self, *sizes, batch_first):
        super().__init__()
        self.inner = nn.LSTM(*sizes)
        self.inner.flatten_parameters = lambda: None
        assert batch_first

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x.transpose(0, 1), lengths, enforce_sorted=False)
        out, (h, c) = self.inner(packed)
        return {"outputs": pad_packed_sequence(out)[0].transpose(0, 1), "h": h, "c": c}


class Model(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(V, E), kind(E, D, batch_first=True), nn.Linear(D, 3)
        self.double().eval()

    def forward(self, ids, lengths):
        found = self.rnn(self.embed(ids), lengths)
        return self.head((found["outputs"] if isinstance(found, dict) else found).sum(1))


@pytest.mark.parametrize("kind", [Packs, TakesTimeFirst])
def test_what_a_class_makes_of_its_arguments_and_results_does_not_matter(kind):
    torch.manual_seed(0)
    model = Model(kind)
    for b, found in enumerate(unrolled.explain_batch(model, IDS, LENGTHS, target=1)):
        n = int(LENGTHS[b])
        alone = unrolled.explain(model, IDS[b : b + 1, :n], LENGTHS[b : b + 1], target=1)
        assert found.tokens == alone.tokens == tuple(map(str, IDS[b, :n].tolist()))
        assert found.ledger == pytest.approx(alone.ledger, abs=1e-12)
        assert abs(found.ledger.remainder) < 1e-13


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("cell", [nn.GRU, nn.LSTMCell])
@pytest.mark.parametrize(
    "norm",
    [
        nn.utils.weight_norm,
        parametrizations.weight_norm,
        nn.utils.spectral_norm,
        parametrizations.spectral_norm,
    ],
    ids=["old weight norm", "weight norm", "old spectral norm", "spectral norm"],
)
def test_normalised_weights_are_those_of_the_call(norm, cell):
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            rnn = nn.GRU(E, D, batch_first=True) if cell is nn.GRU else nn.LSTMCell(E, D)
            self.embed, self.head = nn.Embedding(V, E), nn.Linear(D, 3)
            self.rnn = norm(rnn, "weight_hh_l0" if cell is nn.GRU else "weight_hh")

        def forward(self, ids):
            x, state = self.embed(ids), None
            for t in range(ids.shape[1]):
                state = self.rnn(x[:, t : t + 1], state)[1] if cell is nn.GRU else self.rnn(x[:, t], state)
            return self.head(state[0])

    torch.manual_seed(0)
    model = Loop().double()
    with torch.no_grad():
        logit = float(model.eval()(IDS[:1])[0, 1])
    found = unrolled.explain(model, IDS[:1], target=1)
    assert found.ledger.logit == pytest.approx(logit, abs=1e-12)
    assert len(found.sequences) == 1
    assert abs(found.ledger.remainder) < 1e-12
