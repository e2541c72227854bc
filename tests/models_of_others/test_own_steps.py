"""Steps that users write themselves: methods, masks, nested and changing steps, odd arguments."""

from __future__ import annotations

from collections import OrderedDict, UserDict
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter

import pytest
import torch
from torch import nn

import unrolled
from own_cells import EXACT, IDS, D, E, Encoder, Loop, OwnGRU, Stepped, T, V, assert_same, gru_in_a_loop, zero


def stepped_and_torchs(pool, of_torchs):
    model = Encoder(Stepped(E, D), pool)
    same = Encoder(nn.GRU(E, D, batch_first=True), of_torchs)
    state = model.state_dict()
    for name, own in (("weight_ih_l0", "of_input.weight"), ("weight_hh_l0", "of_state.weight")):
        state[f"rnn.{name}"] = state.pop(f"rnn.{own}")
        state[f"rnn.{name.replace('weight', 'bias')}"] = state.pop(f"rnn.{own.replace('weight', 'bias')}")
    same.load_state_dict(state)
    return model, same


def test_a_method_step_that_the_networks_own_forward_calls():
    model, same = stepped_and_torchs(lambda found: found[0].mean(1), lambda found: found[0].mean(1))
    expected = unrolled.explain(same, IDS, target=1)
    for rnn in (None, "rnn", model.rnn):
        found = unrolled.explain(model, IDS, target=1, rnn=rnn)
        torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=1e-10)
        assert abs(found.ledger.remainder) < 1e-12
    assert "step" not in vars(model.rnn)
    assert "forward" not in vars(model.rnn)


def test_a_batch_is_explained_example_by_example():
    model = gru_in_a_loop()
    batch = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]])
    for each, row in zip(unrolled.explain_batch(model, batch, target=1), batch, strict=True):
        assert_same(each, unrolled.explain(model, row[None], target=1), 1e-12)


def test_a_state_that_is_normalised_or_masked_between_the_steps():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.cell, self.head = nn.Embedding(V, E), OwnGRU(E, D), nn.Linear(D, 3)
            self.norm = nn.LayerNorm(D)
            self.double().eval()

        def forward(self, ids):
            h = zero(ids)
            for t in range(ids.shape[1]):
                mask = (ids[:, t] != 0).double()[:, None]
                h = mask * self.norm(self.cell(self.embed(ids[:, t]), h)) + (1 - mask) * h
            return self.head(h)

    found = unrolled.explain(Masked(), torch.tensor([[3, 1, 4, 0, 0]]), target=1)
    alone = unrolled.explain(Masked(), torch.tensor([[3, 1, 4]]), target=1)
    assert abs(found.ledger.remainder) < 1e-12
    assert [found.token_scores[i].item() for i in range(3)] == pytest.approx(alone.token_scores.tolist(), abs=1e-12)
    assert found.token_scores[3:].abs().max() < 1e-12


class Pondering(nn.Module):
    """A cell that lets another one read each input three times."""

    def __init__(self):
        super().__init__()
        self.inner = OwnGRU(E, D)

    def forward(self, x, h):
        for _ in range(3):
            h = self.inner(x, h)
        return h


def test_of_nested_steps_that_which_is_called_most_often_is_the_cell():
    model = Loop(Pondering(), lambda cell, x, h: cell(x, h), zero)
    found = unrolled.explain(model, IDS, target=1)
    assert len(found) == 3 * T
    assert abs(found.ledger.remainder) < 1e-12
    outer = unrolled.explain(model, IDS, target=1, rnn="cell")
    assert len(outer) == T
    assert abs(outer.ledger.remainder) < 1e-12


def test_a_part_of_the_input_may_be_a_context_of_attention():
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.head = nn.Embedding(V, E), nn.Linear(D, 3)
            self.encoder, self.cell = nn.GRU(E, D, batch_first=True), OwnGRU(E + D, D)
            self.double().eval()

        def forward(self, source, ids):
            memory, last = self.encoder(self.embed(source))
            h = last[0]
            for t in range(ids.shape[1]):
                weights = torch.softmax((memory @ h[:, :, None])[..., 0], dim=1)
                context = (weights[:, None] @ memory)[:, 0]
                h = self.cell(torch.cat([self.embed(ids[:, t]), context], dim=1), h)
            return self.head(h)

    model = Decoder()
    found = unrolled.explain(model, IDS[:, :4], IDS[:, 4:], target=1, rnn=("encoder", model.cell))
    torchs = Decoder()
    torchs.cell = nn.GRUCell(E + D, D).double()
    with torch.no_grad():
        for part, own in (("ih", model.cell.of_input), ("hh", model.cell.of_state)):
            getattr(torchs.cell, f"weight_{part}").copy_(own.weight)
            getattr(torchs.cell, f"bias_{part}").copy_(own.bias)
    expected = unrolled.explain(torchs, IDS[:, :4], IDS[:, 4:], target=1)
    assert abs(found.ledger.remainder) < 1e-12
    for one, other in zip(found.members, expected.members, strict=True):
        torch.testing.assert_close(one.triangle.contributions, other.triangle.contributions, rtol=0, atol=1e-10)
    only = unrolled.explain(model, IDS[:, :4], IDS[:, 4:], target=1, rnn="cell")
    assert abs(only.ledger.remainder) < 1e-12
    assert len(only) == 2


def test_one_example_without_a_batch():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.cell, self.head = MinimalUnbatched(), nn.Linear(D, 3)
            self.double().eval()

        def forward(self, xs):
            h = torch.zeros(D, dtype=torch.float64)
            for x in xs:
                h = self.cell(x, h)
            return self.head(h)

    class MinimalUnbatched(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.u = nn.Linear(E, D), nn.Linear(D, D)

        def forward(self, x, h):
            return torch.tanh(self.w(x) + self.u(h))

    found = unrolled.explain(Plain(), torch.randn(T, E, dtype=torch.float64), target=lambda out: out[1])
    assert abs(found.ledger.remainder) < 1e-12
    assert len(found) == T


def test_the_model_is_left_as_it_was():
    model = gru_in_a_loop()
    model.train()
    before = dict(vars(model.cell))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    unrolled.explain(model, IDS, target=1)
    assert vars(model.cell).keys() == before.keys()
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_weights_that_change_between_the_steps_are_those_of_each_step():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.cell, self.head = nn.Embedding(V, E), OwnGRU(E, D), nn.Linear(D, 3)
            self.double().eval()

        def forward(self, ids):
            h, own = zero(ids), self.cell.of_state.weight
            for t in range(ids.shape[1]):
                self.cell.of_state.weight = nn.Parameter(own * (1 + t))
                h = self.cell(self.embed(ids[:, t]), h)
            self.cell.of_state.weight = own
            return self.head(h)

    for expansion in EXACT:
        found = unrolled.explain(Scaled(), IDS, target=1, expansion=expansion)
        assert found.residual < 1e-6
        assert abs(found.ledger.remainder) < 1e-6


def test_chunks_of_the_users_own_network_are_one_sequence():
    class Chunks(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.rnn, self.head = nn.Embedding(V, E), Stepped(E, D), nn.Linear(D, 3)
            self.double().eval()

        def forward(self, ids):
            state = None
            for part in ids.split(2, dim=1):
                _, state = self.rnn(self.embed(part), state)
            return self.head(state)

    model = Chunks()
    whole = Encoder(Stepped(E, D))
    whole.load_state_dict(model.state_dict())
    found = unrolled.explain(model, IDS, target=1)
    assert len(found) == T
    assert_same(found, unrolled.explain(whole, IDS, target=1), 1e-12)


class Clockwork(OwnGRU):
    """forward(x, h, t): an argument that is no tensor."""

    def forward(self, x, h, t):
        due = torch.tensor([t % (k + 1) == 0 for k in range(D)])
        return torch.where(due, super().forward(x, h), h)


class InPlace(OwnGRU):
    def forward(self, x, h, _):
        new = super().forward(x, h)
        new[:, 0] = h[:, 0] * 0.5
        return new.mul_(0.9)


class OfTokens(OwnGRU):
    """The embedding is inside the cell."""

    def __init__(self, inputs, units):
        super().__init__(inputs, units)
        self.embed = nn.Embedding(V, inputs)

    def forward(self, token, state):
        return super().forward(self.embed(token), state["h"]), {"h": super().forward(self.embed(token), state["h"])}


@pytest.mark.quick_diagonal(3)  # quick: every kind, every expansion
@pytest.mark.parametrize("expansion", EXACT)
@pytest.mark.parametrize("kind", [Clockwork, InPlace, OfTokens])
def test_what_else_a_step_may_do(kind, expansion):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.cell, self.head = nn.Embedding(V, E), kind(E, D), nn.Linear(D, 3)
            self.double().eval()

        def forward(self, ids):
            h, state = zero(ids), {"h": zero(ids)}
            for t in range(ids.shape[1]):
                if kind is OfTokens:
                    h, state = self.cell(ids[:, t], state)
                else:
                    h = self.cell(self.embed(ids[:, t]), h, t)
            return self.head(h)

    found = unrolled.explain(Model(), IDS, target=1, expansion=expansion)
    assert len(found) == T
    assert found.residual < 1e-9
    assert abs(found.ledger.remainder) < 1e-9


@dataclass(frozen=True)
class Kept:
    h: torch.Tensor
    steps: int = field(default=0, init=False)


@pytest.mark.parametrize(("made", "held"), [
    (Kept, attrgetter("h")),
    *((kind, itemgetter("h")) for kind in (lambda h: {"h": h}, lambda h: OrderedDict(h=h), lambda h: UserDict(h=h))),
])  # fmt: skip
def test_a_state_in_a_container_is_that_state(made, held):
    class Boxed(OwnGRU):
        def forward(self, x, state):
            return made(OwnGRU.forward(self, x, held(state)))

    model = Loop(Boxed(E, D), lambda cell, x, state: cell(x, state), lambda ids: made(zero(ids)), held)
    bare = gru_in_a_loop()
    bare.load_state_dict(model.state_dict())
    assert_same(unrolled.explain(model, IDS, target=1), unrolled.explain(bare, IDS, target=1))


class WithHelper(OwnGRU):
    """Its forward calls a helper named ``call`` that takes the state as well."""

    def call(self, x, h, layer):
        return torch.tanh(self.of_input(x)[:, :D] + layer(h)[:, :D])

    def forward(self, x, h):
        z = torch.sigmoid(self.call(x, h, self.of_state))
        return z * h + (1 - z) * self.call(x, h, self.of_state)


def test_a_helper_named_call_is_no_step():
    found = unrolled.explain(Loop(WithHelper(E, D), lambda cell, x, h: cell(x, h), zero), IDS, target=1)
    assert len(found.sequences) == 1
    assert len(found) == T
    assert abs(found.ledger.remainder) < 1e-12
