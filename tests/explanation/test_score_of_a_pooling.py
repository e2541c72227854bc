"""A score means the same behind every pooling: what an n-gram contributes where the model reads most."""

import pytest
import torch
from torch import nn

import unrolled

T, E, D = 6, 3, 5


class Pooled(nn.Module):
    def __init__(self, kind, pool, both=False):
        super().__init__()
        torch.manual_seed(1)
        self.rnn = kind(E, D, batch_first=True, bidirectional=both)
        self.head = nn.Linear(D * (1 + both), 2)
        self.pool = pool
        self.double()

    def attend(self, states):
        return states.sum(-1, keepdim=True).softmax(1)

    def pooled(self, states, final):
        match self.pool:
            case "last":
                return final.transpose(0, 1).flatten(1)
            case "mean":
                return states.mean(1)
            case "sum":
                return states.sum(1)
            case "max":
                return states.amax(1)
            case "attention":
                return (self.attend(states) * states).sum(1)
            case "change":
                return states[:, -1] - states[:, 0]

    def forward(self, x):
        states, final = self.rnn(x)
        return self.head(self.pooled(states, final[0] if isinstance(final, tuple) else final))


def expected_weight(model, x):
    """U times how much of the state the model takes where it takes most."""
    u = model.head.weight[1].detach()
    with torch.no_grad():
        states = model.rnn(x)[0]
    return {"mean": u / T, "attention": u * model.attend(states).max()}.get(model.pool, u)


POOLS = ("last", "mean", "max", "sum", "attention", "change")


@pytest.mark.quick_diagonal(3)  # quick: every pooling, every network
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("pool", POOLS)
def test_the_score_is_the_class_weight_times_what_is_read_of_a_state(kind, pool):
    model, x = Pooled(kind, pool), torch.randn(1, T, E).double()
    found = unrolled.explain(model, x, target=1)
    vectors = unrolled.decompose(model.rnn, x).vectors()[0]  # (end, start, hidden)
    torch.testing.assert_close(
        found.triangle.scores[0], (vectors @ expected_weight(model, x)).tril(), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("pool", POOLS)
def test_both_directions_and_calls_apart_score_alike(pool):
    model, x = Pooled(nn.GRU, pool, both=True), torch.randn(1, T, E).double()
    found, weight = unrolled.explain(model, x, target=1), expected_weight(model, x)
    for d in (0, 1):
        vectors = unrolled.decompose(model.rnn, x).vectors(d)[0]
        expected = vectors @ weight[d * D : (d + 1) * D]
        if pool == "change" and d == 1:  # read from the end to the beginning, the first token comes last
            expected = -expected
        torch.testing.assert_close(found.triangle.scores[d], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("pool", ["last", "mean", "sum", "max", "attention"])
def test_an_n_gram_scores_what_it_contributes_where_it_is_read_most(pool):
    model, x = Pooled(nn.LSTM, pool), torch.randn(1, T, E).double()
    scores, contributions = (
        getattr(unrolled.explain(model, x, target=1).triangle, name)[0] for name in ("scores", "contributions")
    )
    if pool in ("sum", "mean"):  # every position is read alike
        torch.testing.assert_close(scores, contributions)
    elif pool == "last":
        torch.testing.assert_close(scores[-1], contributions[-1])
    elif pool == "attention":
        with torch.no_grad():
            most = int(model.attend(model.rnn(x)[0])[0].argmax())
        torch.testing.assert_close(scores[most], contributions[most])
    else:  # each number of the state contributes at one position: all positions together read it once
        reads = contributions.sum()
        torch.testing.assert_close(reads, torch.tensor(unrolled.explain(model, x, target=1).ledger.ngrams).double())
        assert not torch.allclose(scores, contributions)


def test_padding_is_no_position():
    model, x = Pooled(nn.GRU, "sum"), torch.randn(3, T, E).double()
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([T, 4, 2]), batch_first=True)

    class Packs(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = model.rnn, model.head

        def forward(self, given):
            states, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(given)[0], batch_first=True)
            return self.head(states.sum(1))

    for found in unrolled.explain_batch(Packs(), packed, target=0):
        torch.testing.assert_close(found.triangle.scores, found.triangle.contributions)


def test_two_calls_in_one_ledger_score_alike():
    class Pair(Pooled):
        def forward(self, x, y):
            return self.head(self.rnn(x)[0].sum(1) - self.rnn(y)[0].sum(1))

    model, x, y = Pair(nn.GRU, "sum"), torch.randn(1, T, E).double(), torch.randn(1, T - 2, E).double()
    for found in unrolled.explain(model, x, y, target=1).sequences:
        torch.testing.assert_close(found.triangle.scores, found.triangle.contributions)
