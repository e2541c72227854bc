"""Whole networks that users wrote: with the weights of torch.nn's they have its n-grams, else those of their cells."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError

V, E, D, T = 11, 4, 5, 6
IDS = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]])


class ByHand(nn.Module):
    """A network in a Python loop with torch.nn's weights; ``form`` is how it gives its results."""

    def __init__(self, like, form, batch_first=True):
        super().__init__()
        for name, weight in like.named_parameters():
            self.register_parameter(name, nn.Parameter(weight.detach().clone()))
        self.kind, self.layers, self.form, self.batch_first = like.mode, like.num_layers, form, batch_first

    def cell(self, layer, x, h, c):
        a = nn.functional.linear(x, getattr(self, f"weight_ih_l{layer}"), getattr(self, f"bias_ih_l{layer}"))
        b = nn.functional.linear(h, getattr(self, f"weight_hh_l{layer}"), getattr(self, f"bias_hh_l{layer}"))
        if self.kind == "LSTM":
            i, f, g, o = (a + b).chunk(4, dim=1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            return o.sigmoid() * c.tanh(), c
        if self.kind == "GRU":
            (ar, az, an), (br, bz, bn) = a.chunk(3, dim=1), b.chunk(3, dim=1)
            z = (az + bz).sigmoid()
            return (1 - z) * (an + (ar + br).sigmoid() * bn).tanh() + z * h, c
        return (torch.tanh if self.kind == "RNN_TANH" else torch.relu)(a + b), c

    def forward(self, inputs, state=None):
        xs = list(inputs.unbind(1 if self.batch_first else 0))
        finals = []
        for layer in range(self.layers):
            h = c = xs[0].new_zeros(len(xs[0]), D)
            if state is not None:
                h, c = (state[0][layer], state[1][layer]) if self.kind == "LSTM" else (state[layer], c)
            for t, x in enumerate(xs):
                h, c = self.cell(layer, x, h, c)
                xs[t], c = h, c if self.kind == "LSTM" else h
            finals.append((h, c))
        h_n, c_n = (torch.stack(part) for part in zip(*finals, strict=True))
        return self.form(torch.stack(xs, 1 if self.batch_first else 0), h_n, c_n)


class Model(nn.Module):
    def __init__(self, rnn, pool, batch_first=True):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head, self.pool = nn.Embedding(V, E), rnn, nn.Linear(D, 3), pool
        self.batch_first = batch_first
        self.double().eval()

    def forward(self, ids):
        x = self.embed(ids)
        return self.head(self.pool(self.rnn(x if self.batch_first else x.transpose(0, 1))))


def as_torch(out, h, c):
    return out, (h, c)


def outputs(out, _h, _c):
    return out


def top(out, h, _c):
    return out, h[-1]


def dictionary(out, _h, c):
    return {"out": out, "c": c}


FORMS = {
    "as torch.nn's": (as_torch, lambda r: r[0].mean(1), lambda r: r[0].mean(1)),
    "the outputs alone": (outputs, lambda r: r[:, -1], lambda r: r[0][:, -1]),
    "h of the top": (top, lambda r: r[1], lambda r: r[0][:, -1]),
    "a dictionary": (dictionary, lambda r: r["out"].amax(1), lambda r: r[0].amax(1)),
}
KINDS = [
    (nn.LSTM, {}),
    (nn.LSTM, {"num_layers": 2}),
    (nn.GRU, {"num_layers": 2}),
    (nn.RNN, {}),
    (nn.RNN, {"nonlinearity": "relu"}),
]


@pytest.mark.quick_diagonal(3)  # quick: every network, every form
@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_class_with_torchs_weights_has_the_n_grams_of_torchs_network(kind, options, form):
    torch.manual_seed(3)
    torchs = kind(E, D, batch_first=True, **options)
    give, pool, same_pool = FORMS[form]
    model = Model(ByHand(torchs, give), pool)
    expected = unrolled.explain_batch(Model(torchs, same_pool), IDS, target=1)
    was = model.rnn
    for rnn in (None, "rnn", model.rnn):
        for one, other in zip(unrolled.explain_batch(model, IDS, target=1, rnn=rnn), expected, strict=True):
            torch.testing.assert_close(one.triangle.contributions, other.triangle.contributions, rtol=0, atol=1e-10)
            torch.testing.assert_close(one.triangle.scores, other.triangle.scores, rtol=0, atol=1e-10)
            assert abs(one.ledger.remainder) < 1e-12
            assert one.notes == other.notes
    assert model.rnn is was
    assert not any(hasattr(part, "network") for part in model.modules())


def test_the_time_may_come_first():
    torch.manual_seed(3)
    torchs = nn.GRU(E, D)
    model = Model(ByHand(torchs, top, False), lambda r: r[0].mean(0), False)
    found = unrolled.explain_batch(model, IDS, target=1)
    expected = unrolled.explain_batch(Model(torchs, lambda r: r[0].mean(0), False), IDS, target=1)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.triangle.contributions, other.triangle.contributions, rtol=0, atol=1e-10)


class OtherGates(ByHand):
    """The same names and shapes, but o and g change places: another network."""

    def cell(self, layer, x, h, c):
        a = nn.functional.linear(x, getattr(self, f"weight_ih_l{layer}"), getattr(self, f"bias_ih_l{layer}"))
        b = nn.functional.linear(h, getattr(self, f"weight_hh_l{layer}"), getattr(self, f"bias_hh_l{layer}"))
        i, f, o, g = (a + b).chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class OtherGatesBySteps(OtherGates):
    def step(self, x, h, c):
        return self.cell(0, x, h, c)

    def forward(self, inputs):
        h = c = inputs.new_zeros(len(inputs), D)
        for t in range(inputs.shape[1]):
            h, c = self.step(inputs[:, t], h, c)
        return h


def test_another_network_with_the_same_names_is_not_taken_for_torchs():
    torch.manual_seed(3)
    torchs = nn.LSTM(E, D, batch_first=True)
    model = Model(OtherGates(torchs, outputs), lambda r: r[:, -1])
    with pytest.raises(UsageError, match=r"rnn is an OtherGates that computes its steps itself.*as_cell") as told:
        unrolled.explain(model, IDS[:1], target=1)
    assert "\n" not in str(told.value)
    found = {part.path: part for part in unrolled.check(model, IDS[:1], target=1).parts}
    assert not found["rnn"].opens
    assert "computes its steps itself" in found["rnn"].why
    assert found["whole model"].opens
    stepped = Model(OtherGatesBySteps(torchs, None), lambda r: r)
    opened = unrolled.explain(stepped, IDS[:1], target=1)
    assert abs(opened.ledger.remainder) < 1e-12
    assert opened.ledger.logit == pytest.approx(unrolled.explain(stepped, IDS[:1], target=1, rnn="rnn").ledger.logit)
    assert float(stepped(IDS[:1])[0, 1].detach()) == pytest.approx(opened.ledger.logit)


def test_nor_where_its_states_are_small():
    torch.manual_seed(3)
    torchs = nn.LSTM(E, D, batch_first=True)
    for weight in torchs.parameters():
        weight.data *= 1e-4
    for kind, same in ((OtherGatesBySteps, False), (ByHand, True)):
        model = Model(kind(torchs, outputs), lambda r: r if r.dim() == 2 else r[:, -1]).float()
        moved = float((model(IDS[:1]) - model.head.bias)[0, 1].detach())
        found = unrolled.explain(model, IDS[:1], target=1)
        assert found.ledger.ngrams == pytest.approx(moved, rel=1e-2)
        of_torch = Model(torchs, lambda r: r[0][:, -1]).float()
        expected = float((of_torch(IDS[:1]) - of_torch.head.bias)[0, 1].detach())
        assert (moved == pytest.approx(expected, rel=1e-2)) == same  # the control


class OtherWithState(ByHand):
    """Gives what torch.nn's network gives without an initial state, and something else with one."""

    def forward(self, inputs, state=None):
        return (1 if state is None else 2) * super().forward(inputs, state)


def test_a_network_that_differs_at_its_second_call_is_not_taken_for_torchs():
    class Twice(Model):
        def forward(self, ids):
            first = self.rnn(self.embed(ids[:, :3]))
            return self.head(self.rnn(self.embed(ids[:, 3:]), first[:, -1][None])[:, -1])

    torch.manual_seed(3)
    torchs = nn.GRU(E, D, batch_first=True)
    with pytest.raises(UsageError, match="rnn is an OtherWithState that computes its steps itself"):
        unrolled.explain(Twice(OtherWithState(torchs, outputs), None), IDS[:1], target=1)
    assert unrolled.explain(Twice(ByHand(torchs, outputs), None), IDS[:1], target=1).closes


def test_check_names_the_network_and_account_opens_it():
    torch.manual_seed(3)
    torchs = nn.LSTM(E, D, batch_first=True)
    model = Model(ByHand(torchs, outputs), lambda r: r.mean(1))
    parts = {part.path: part for part in unrolled.check(model, IDS[:1], target=1).parts}
    assert parts["rnn"].opens
    assert parts["rnn"].kind == "ByHand"
    found = unrolled.account(model, IDS, target=1)
    expected = unrolled.account(Model(torchs, lambda r: r[0].mean(1)), IDS, target=1)
    torch.testing.assert_close(found.tokens, expected.tokens, rtol=0, atol=1e-10)


def test_the_network_itself_is_the_model():
    torch.manual_seed(3)
    torchs = nn.GRU(E, D, batch_first=True).double()
    x = torch.randn(1, T, E, dtype=torch.float64)
    found = unrolled.explain(ByHand(torchs, outputs), x, target=lambda out: out[:, -1, 2])
    expected = unrolled.explain(torchs, x, target=lambda out: out[0][:, -1, 2])
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=1e-10)
