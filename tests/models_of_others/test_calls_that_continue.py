"""Networks that a model calls step by step: character models in a loop, policies, streams in chunks."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

V, E, D, T = 11, 4, 5, 7
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8, 9, 7]])


class Reader(nn.Module):
    """Reads a text by ``how``, and classifies the last state."""

    def __init__(self, kind, how, layers=1):
        super().__init__()
        self.embed, self.net = nn.Embedding(V, E), kind(E, D, num_layers=layers, batch_first=True)
        self.head, self.how = nn.Linear(D, 3), how
        self.double().eval()

    def forward(self, ids):
        return self.head(self.how(self.net, self.embed(ids)))


def at_once(net, x):
    return net(x)[0][:, -1]


def step_by_step(net, x):
    state = None
    for t in range(x.shape[1]):
        out, state = net(x[:, t : t + 1], state)
    return out[:, 0]


def in_chunks(net, x):
    state = None
    for chunk in x.split(3, dim=1):
        out, state = net(chunk, state)
        state = tuple(part.detach() for part in state) if isinstance(state, tuple) else state.detach()
    return out[:, -1]


def with_zeros_and_a_list(net, x):
    empty = torch.zeros(net.num_layers, len(x), D, dtype=x.dtype)
    state = [empty, empty] if isinstance(net, nn.LSTM) else [empty]
    for t in range(x.shape[1]):
        with torch.no_grad():
            after = net(x[:, t : t + 1], tuple(state) if len(state) == 2 else state[0])[1]
        state = list(after) if isinstance(after, tuple) else [after]
    return state[0][-1]


def tensor_of_states(net, x):
    outs = torch.zeros(x.shape[1], len(x), D, dtype=x.dtype)
    state = None
    for t in range(x.shape[1]):
        out, state = net(x[:, t].unsqueeze(1), state)
        outs[t] = out[:, 0]
    return outs[-1]


LOOPS = [step_by_step, in_chunks, with_zeros_and_a_list, tensor_of_states]


@pytest.mark.quick_diagonal(3)  # quick: every loop, every kind, every expansion
@pytest.mark.parametrize("expansion", ["secant", "operating", "mean(operating,secant)"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("how", LOOPS)
def test_calls_that_continue_are_the_call_at_once(how, kind, layers, expansion):
    if expansion != "secant" and (kind is nn.RNN or layers == 2):
        pytest.skip("one network of one layer is enough for the other expansions")
    torch.manual_seed(0)
    whole, loop = Reader(kind, at_once, layers), Reader(kind, how, layers)
    loop.load_state_dict(whole.state_dict())
    for expected, found in zip(
        unrolled.explain_batch(whole, IDS, target=1, expansion=expansion),
        unrolled.explain_batch(loop, IDS, target=1, expansion=expansion),
        strict=True,
    ):
        assert found.tokens == expected.tokens
        assert found.ledger == pytest.approx(expected.ledger, abs=1e-12)
        for name in ("scores", "contributions"):
            mine, theirs = (getattr(e.triangle, name) for e in (found, expected))
            torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=0)


def test_calls_that_forget_are_a_sequence_each():
    def forgets(net, x):
        return sum(net(chunk)[0][:, -1] for chunk in x.split(3, dim=1))

    found = unrolled.explain(Reader(nn.LSTM, forgets), IDS[:1], target=1)
    assert [len(each) for each in found.sequences] == [3, 3, 1]
    assert [each.name for each in found.sequences] == ["net, call 0", "net, call 1", "net, call 2"]
    assert abs(found.ledger.remainder) < 1e-12


def test_a_call_is_chosen_by_its_number():
    def forgets(net, x):
        return sum(net(chunk)[0][:, -1] for chunk in x.split(3, dim=1))

    model = Reader(nn.GRU, forgets)
    whole = unrolled.explain(model, IDS[:1], target=1)
    one = unrolled.explain(model, IDS[:1], target=1, call=1)
    assert one.tokens == ("1", "5", "9")
    torch.testing.assert_close(one.triangle.contributions, whole.sequences[1].triangle.contributions)
    others = {name: value for name, value in one.biases.items() if name.startswith("n-grams of")}
    assert others == pytest.approx({f"n-grams of net, call {k}": whole.sequences[k].ledger.ngrams for k in (0, 2)})
    with pytest.raises(unrolled.UsageError, match=r"call is 3; expected 0 to 2: net, call 0, net, call 1, net, call 2"):
        unrolled.explain(model, IDS[:1], target=1, call=3)
    for wrong in ("net", 1.0):
        with pytest.raises(unrolled.UsageError, match=r"call is .*; expected a whole number from 0"):
            unrolled.explain(model, IDS[:1], target=1, call=wrong)


def test_an_initial_state_that_is_learned_and_one_that_is_given_are_no_n_grams():
    class Learned(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.net, self.head = nn.Embedding(V, E), nn.GRUCell(E, D), nn.Linear(D, 2)
            self.h0 = nn.Parameter(torch.randn(D))

        def forward(self, ids):
            h = self.h0.expand(len(ids), -1)
            for t in range(ids.shape[1]):
                h = self.net(self.embed(ids[:, t]), h)
            return self.head(h)

    model = Learned().double()
    for each in unrolled.explain_batch(model, IDS, target=0):
        assert abs(each.ledger.initial) > 1e-4
        assert abs(each.ledger.remainder) < 1e-12
    with torch.no_grad():
        model.h0.zero_()
    assert all(each.ledger.initial == 0 for each in unrolled.explain_batch(model, IDS, target=0))


def test_a_batch_that_shrinks_step_by_step_has_every_sequence_whole():
    class Captions(nn.Module):
        """Sorts its batch by length and steps with those that are left."""

        def __init__(self):
            super().__init__()
            self.embed, self.cell, self.out = nn.Embedding(V, E), nn.LSTMCell(E, D), nn.Linear(D, V)

        def forward(self, ids, lengths):
            lengths, order = lengths.sort(descending=True)
            x = self.embed(ids[order])
            h = c = torch.zeros(len(ids), D, dtype=x.dtype)
            out = torch.zeros(len(ids), int(lengths.max()), V, dtype=x.dtype)
            for t in range(int(lengths.max())):
                left = int((lengths > t).sum())
                h, c = self.cell(x[:left, t], (h[:left], c[:left]))
                out[:left, t] = self.out(h)
            return out[order.argsort()]

    torch.manual_seed(1)
    model, lengths = Captions().double(), torch.tensor([3, 7])
    found = unrolled.explain_batch(model, IDS, lengths, target=lambda out: out[torch.arange(2), lengths - 1, 4])
    for b, each in enumerate(found):
        n = int(lengths[b])
        alone = unrolled.explain(model, IDS[b : b + 1, :n], lengths[b : b + 1], target=lambda out: out[:, -1, 4])
        assert each.tokens == alone.tokens == tuple(map(str, IDS[b, :n].tolist()))
        assert each.ledger == pytest.approx(alone.ledger, abs=1e-12)
        torch.testing.assert_close(each.triangle.contributions, alone.triangle.contributions, atol=1e-12, rtol=0)


def test_limited_n_grams_of_a_loop_are_those_of_the_call_at_once():
    torch.manual_seed(0)
    whole, loop = Reader(nn.GRU, at_once), Reader(nn.GRU, step_by_step)
    loop.load_state_dict(whole.state_dict())
    expected, found = (unrolled.explain(m, IDS[:1], target=1, max_order=3) for m in (whole, loop))
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, atol=1e-12, rtol=0)
    torch.testing.assert_close(found.token_scores, expected.token_scores, atol=1e-12, rtol=0)
    assert found.longer == pytest.approx(expected.longer, abs=1e-12)
    assert abs(found.ledger.remainder) < 1e-12


def test_the_model_is_left_as_it_was():
    model = Reader(nn.LSTM, step_by_step).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    unrolled.explain(model, IDS[:1], target=1)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all("forward" not in part.__dict__ for part in model.modules())
    model(IDS).sum().backward()
