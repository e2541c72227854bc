"""A bidirectional network of several layers is opened down to its tokens, and every path is counted once."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.flop_counter import FlopCounterMode

import unrolled
from reference_paths import opened, paths
from unrolled.cells import recurrent
from unrolled.errors import UsageError

T, E, D = 4, 3, 2


def network(kind, layers, scale=2.0):
    torch.manual_seed(1)
    rnn = kind(E, D, layers, bidirectional=True, batch_first=True).double()
    with torch.no_grad():
        for parameter in rnn.parameters():
            parameter.mul_(scale)
    return rnn


class Pooled(nn.Module):
    """A network with a linear head behind a pooling whose weights are known."""

    def __init__(self, kind, layers, pool):
        super().__init__()
        self.rnn, self.pool = network(kind, layers), pool
        self.head = nn.Linear(2 * D, 3).double()

    def forward(self, x):
        states, final = self.rnn(x)
        if self.pool == "h_n":  # of all layers, the lower ones too
            final = final[0] if isinstance(final, tuple) else final
            return self.head(sum(torch.cat((final[k], final[k + 1]), -1) for k in range(0, len(final), 2)))
        return self.head(
            {
                "last": lambda: states[:, -1],
                "mean": lambda: states.mean(1),
                "sum": lambda: states.sum(1),
                "max": lambda: states.amax(1),
                "attention": lambda: (states * states.sum(-1, keepdim=True).softmax(1)).sum(1),
            }[self.pool]()
        )

    def weights(self, x):
        """w of every layer, direction and position, as (state of that layer) -> its part of output 1."""
        states = self.rnn(x)[0][0].detach()
        w, layers = self.head.weight[1].detach(), self.rnn.num_layers
        each = {
            "last": torch.eye(T)[-1][:, None] * torch.ones(2 * D),
            "mean": torch.full((T, 2 * D), 1 / T),
            "sum": torch.ones(T, 2 * D),
            "max": (states == states.amax(0)).double(),
            "attention": states.sum(-1, keepdim=True).softmax(0).expand(T, 2 * D),
        }
        found = {}
        for level, way, t in itertools.product(range(layers), (0, 1), range(T)):
            half = slice(way * D, (way + 1) * D)
            if self.pool == "h_n":
                found[level, way, t] = w[half] * float(t == (0 if way else T - 1))
            else:
                found[level, way, t] = w[half] * each[self.pool][t, half] * float(level == layers - 1)
        return found


def where_it_is_read_most(weights, level, way):
    """For each number of a state its weight of largest magnitude; the last read of several in the direction's order."""
    order = range(T) if way == 0 else range(T - 1, -1, -1)
    return torch.stack([max((weights[level, way, t][k] for t in order), key=abs) for k in range(D)])


POOLS = ("last", "mean", "max", "attention", "sum", "h_n")
CASES = [  # quick: every pooling with each network, one of them of two layers and one of three
    pytest.param(
        *(kind, layers, pool, "secant"),
        marks=[] if (kind is nn.GRU) == ((layers + place) % 2 == 0) else pytest.mark.slow,
    )
    for kind, layers, (place, pool) in itertools.product((nn.GRU, nn.LSTM), (2, 3), enumerate(POOLS))
]
CASES += [(nn.RNN, 2, "mean", "path"), (nn.LSTM, 2, "h_n", "operating"), (nn.GRU, 3, "mean", "operating")]


@pytest.mark.parametrize(("kind", "layers", "pool", "expansion"), CASES)
def test_tokens_and_spans_are_sums_over_all_paths(kind, layers, pool, expansion):
    model, x = Pooled(kind, layers, pool), torch.randn(1, T, E).double()
    weights = model.weights(x)
    by_token, initial = torch.zeros(T).double(), 0.0
    contributions, scores = torch.zeros(2, T, T).double(), torch.zeros(2, T, T).double()
    for token, level, way, t, low, high, vector in paths(opened(model.rnn, x[0], expansion)):
        part = weights[level, way, t] @ vector[-D:]
        by_token[token] += part
        end, other = (high, low) if way == 0 else (low, high)
        contributions[way, end, other] += part
        if t == end:
            scores[way, end, other] += where_it_is_read_most(weights, level, way) @ vector[-D:]
    found = unrolled.explain(model, x, target=1, expansion=expansion)
    close = {"rtol": 1e-9, "atol": 1e-11}
    torch.testing.assert_close(found.token_scores, by_token, **close)
    torch.testing.assert_close(found.triangle.contributions, contributions, **close)
    torch.testing.assert_close(found.triangle.scores, scores, **close)
    assert found.max_order is None
    assert not [note for note in found.notes if "as large as their sum" not in note]  # parts may cancel
    assert initial == found.ledger.initial
    assert abs(found.ledger.remainder) < 1e-12
    assert float(found.triangle.contributions.sum()) == pytest.approx(found.ledger.ngrams, abs=1e-11)
    # the control: the token where a span begins is not the token where its paths enter
    by_start = found.triangle.contributions[0].sum(0) + found.triangle.contributions[1].sum(1)
    assert not torch.allclose(by_start, by_token, rtol=1e-3)


@pytest.mark.quick_diagonal(2)  # quick: every network, two layers and three
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("layers", [2, 3])
def test_a_window_cuts_the_spans_and_no_total(kind, layers):
    model, x = Pooled(kind, layers, "mean"), torch.randn(1, T, E).double()
    whole = unrolled.explain(model, x, target=0, expansion="operating")
    for longest in range(1, T + 2):
        part = unrolled.explain(model, x, target=0, expansion="operating", max_order=longest)
        torch.testing.assert_close(part.token_scores, whole.token_scores)
        for start, stop in itertools.combinations(range(T + 1), 2):
            for direction in ("forward", "backward"):
                if stop - start <= longest:
                    assert part.score(start, stop, direction) == pytest.approx(whole.score(start, stop, direction))
                    one, other = (e.contribution(start, stop, direction) for e in (part, whole))
                    assert one == pytest.approx(other)
        rest = sum(n.contribution for n in whole.ngrams() if n.order > longest)
        assert part.longer == pytest.approx(rest, abs=1e-12)
        assert dict(part.ledger) == pytest.approx(dict(whole.ledger), abs=1e-12)
        assert (part.max_order is None) == (longest >= T)
        if longest < T:
            with pytest.raises(UsageError, match=f"expected at most {longest} tokens: pass a larger max_order"):
                part.score(0, T)


def test_a_long_text_is_told_apart_up_to_six_tokens_and_counted_whole():
    model, x = Pooled(nn.GRU, 2, "mean"), torch.randn(1, 30, E).double()
    found = unrolled.explain(model, x, target=0)
    assert found.max_order == 6
    assert not found.triangle.contributions[0, 10, 4]
    assert found.triangle.contributions[0, 9, 4]
    assert float(found.token_scores.sum()) == pytest.approx(found.ledger.ngrams)
    assert abs(found.ledger.remainder) < 1e-12
    assert abs(found.longer) > 0


@pytest.mark.parametrize("way", ["packed", "padded by a mask"])
def test_a_batch_is_its_examples(way):
    class Model(Pooled):
        def forward(self, x, lengths):
            given = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False) if way == "packed" else x
            out = self.rnn(given)[0]
            if way == "packed":
                out = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0]
            return self.head(out.sum(1))

    model, lengths = Model(nn.LSTM, 3, "sum"), torch.tensor([5, 2, 1, 4])
    x = torch.randn(4, 5, E).double()
    together = unrolled.explain_batch(model, x, lengths, target=2)
    for b, n in enumerate(lengths.tolist() if way == "packed" else [5] * 4):
        alone = unrolled.explain(model, x[b : b + 1, :n], lengths[b : b + 1].clamp_max(n), target=2)
        torch.testing.assert_close(together[b].triangle.contributions, alone.triangle.contributions)
        torch.testing.assert_close(together[b].triangle.scores, alone.triangle.scores)
        torch.testing.assert_close(together[b].token_scores, alone.token_scores)


@pytest.mark.parametrize("pool", ["mean", "max", "h_n"])
def test_the_accounts_of_several_outputs_are_those_of_each(pool):
    """With max pooling the weights of the positions are no multiples of each other, with mean pooling they are."""
    model, x = Pooled(nn.LSTM, 3, pool), torch.randn(1, T, E).double()
    every = unrolled.explain(model, x, target=0, every_class=True)
    for target, together in enumerate(every.by_class):
        alone = unrolled.explain(model, x, target=target, every_class=False)
        torch.testing.assert_close(together.triangle.contributions, alone.triangle.contributions)
        torch.testing.assert_close(together.triangle.scores, alone.triangle.scores)
        torch.testing.assert_close(together.token_scores, alone.token_scores)


@pytest.mark.slow
def test_all_spans_of_two_layers_cost_the_square_of_the_length_and_of_three_the_cube():
    def operations(layers, time):
        model, x = Pooled(nn.GRU, layers, "mean"), torch.randn(1, time, E).double()
        with FlopCounterMode(display=False) as counter:
            unrolled.explain(model, x, target=1, max_order=time, every_class=False)
        return counter.get_total_flops()

    assert operations(2, 24) / operations(2, 12) < 4
    assert operations(3, 24) / operations(3, 12) > 5


@pytest.mark.parametrize("name", ["mlstm", "mmlstm", "mi_gru"])
def test_networks_of_our_cells(name):
    rnn = recurrent(name, E, D, 2, True, batch_first=True).double()
    found = unrolled.decompose(rnn, torch.randn(2, T, E).double(), expansion="operating")
    for d in (0, 1):
        torch.testing.assert_close(found.vectors(d).sum(2) + found.initial(d), found.states(d))
        assert found.vectors(d)[:, 1, 3].any()  # a token on the other side
        assert found.residual(d).max() < 1e-12


def test_an_initial_state_has_its_own_part_in_every_layer():
    rnn, x = network(nn.LSTM, 2), torch.randn(2, T, E).double()
    state = (torch.randn(4, 2, D).double(), torch.randn(4, 2, D).double())
    found = unrolled.decompose(rnn, x, state=state)
    for d in (0, 1):
        assert found.initial(d).abs().max() > 1e-3
        torch.testing.assert_close(found.vectors(d).sum(2) + found.initial(d), found.states(d))
        assert not found.older(d).any()
    for way in range(4):  # no layer's initial state is left out
        one = tuple(torch.zeros_like(part) for part in state)
        for mine, given in zip(one, state, strict=True):
            mine[way] = given[way]
        alone = unrolled.decompose(rnn, x, state=one)
        assert max(float(alone.initial(d).abs().max()) for d in (0, 1)) > 1e-6


def test_an_order_of_terms_by_token_is_refused():
    with pytest.raises(
        UsageError, match="max_order is 2, but a term of a deep bidirectional network is that of a token"
    ):
        unrolled.decompose(network(nn.GRU, 2), torch.randn(1, T, E).double(), max_order=2)


def test_the_control_zero_leaves_a_remainder():
    model, x = Pooled(nn.GRU, 2, "mean"), torch.randn(1, T, E).double()
    found = unrolled.explain(model, x, target=0, expansion="zero")
    assert not found.exact
    assert abs(found.ledger.remainder) > 1e-4
    assert found.residual > 1e-2


@pytest.mark.parametrize("layers", [1, 2])
def test_a_window_of_a_uni_directional_network_cuts_no_total(layers):
    torch.manual_seed(0)
    embed, rnn = nn.Embedding(9, E), nn.LSTM(E, D, layers, batch_first=True)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn, self.head = embed, rnn, nn.Linear(D, 2)

        def forward(self, ids):
            return self.head(self.rnn(self.embed(ids))[0].mean(1))

    model, ids = Model().double(), torch.randint(0, 9, (2, 6))
    for whole, part in zip(
        unrolled.explain_batch(model, ids, target=0),
        unrolled.explain_batch(model, ids, target=0, max_order=2),
        strict=True,
    ):
        torch.testing.assert_close(part.token_scores, whole.token_scores)
        assert dict(part.ledger) == pytest.approx(dict(whole.ledger), abs=1e-12)
        assert part.longer == pytest.approx(sum(n.contribution for n in whole.ngrams() if n.order > 2), abs=1e-12)
        assert len(list(part.ngrams())) == 6 + 5
        assert part.residual < 1e-12
