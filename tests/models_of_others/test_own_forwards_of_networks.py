"""Subclasses of torch's networks: they are opened by what their forward computes, not by what their class is called."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import unrolled
from own_cells import IDS, D, E, Encoder, assert_same, gru_step, lstm_step
from unrolled.errors import ParityError, UsageError


class Hand(nn.RNNBase):
    """A network of torch's interface whose forward is a loop in Python, with any number of layers."""

    def __init__(self, mode="LSTM", layers=1, forget=0.0, activation=torch.tanh):
        super().__init__(mode, E, D, num_layers=layers, batch_first=True)
        self.forget, self.activation = forget, activation

    def cell(self, x, h, c, weights):
        if self.mode == "LSTM":
            return lstm_step(x, h, c, weights, self.forget)
        if self.mode == "GRU":
            return gru_step(x, h, weights, self.activation), c
        return self.activation(F.linear(x, weights[0], weights[2]) + F.linear(h, weights[1], weights[3])), c

    def forward(self, xs, state=None):
        pair = self.mode == "LSTM"
        start = xs.new_zeros(self.num_layers, len(xs), D) if state is None else state
        h, c = (list(each.unbind(0)) for each in (start if pair and state is not None else (start, start)))
        outputs = []
        for x in xs.unbind(1):
            for level, weights in enumerate(self.all_weights):
                h[level], c[level] = self.cell(x, h[level], c[level], weights)
                x = h[level]
            outputs.append(x)
        last = torch.stack(h)
        return torch.stack(outputs, dim=1), (last, torch.stack(c)) if pair else last


class HandByStep(Hand):
    """Its loop calls a method that is called a step."""

    def step(self, x, state):
        return self.activation(F.linear(x, self.weight_ih_l0) + F.linear(state, self.weight_hh_l0))

    def cell(self, x, h, c, weights):
        return self.step(x, h), c


class OfLSTM(Hand, nn.LSTM):
    """A subclass of nn.LSTM with a loop of its own."""

    def __init__(self, forget):
        nn.LSTM.__init__(self, E, D, batch_first=True)
        self.forget = forget


class Kernel(nn.LSTM):
    """Runs torch's kernel."""

    def __init__(self):
        super().__init__(E, D, batch_first=True)

    def forward(self, xs, state=None):
        return super().forward(xs, state)


SAME = {
    "LSTM": (lambda: Hand("LSTM"), nn.LSTM, {}),
    "LSTM of two layers": (lambda: Hand("LSTM", 2), nn.LSTM, {"num_layers": 2}),
    "GRU": (lambda: Hand("GRU"), nn.GRU, {}),
    "relu": (lambda: Hand("RNN_RELU", activation=torch.relu), nn.RNN, {"nonlinearity": "relu"}),
    "of nn.LSTM": (lambda: OfLSTM(0.0), nn.LSTM, {}),
    "kernel": (Kernel, nn.LSTM, {}),
}
OTHERS = {
    "another gate": lambda: Hand("LSTM", forget=1.0),
    "another activation": lambda: Hand("GRU", activation=torch.relu),
    "another gate of nn.LSTM": lambda: OfLSTM(1.0),
}


def last_output(found):
    return found[0][:, -1]


def twice(rnn, xs):
    _, state = rnn(xs[:, :2])
    return rnn(xs[:, 2:], state)[0][:, -1]


class Twice(Encoder):
    """Goes on from the state of a first call."""

    def forward(self, ids):
        return self.head(twice(self.rnn, self.embed(ids)))


@pytest.mark.quick_diagonal(2)  # quick: every subclass
@pytest.mark.parametrize("kind", [Encoder, Twice])
@pytest.mark.parametrize("name", SAME)
def test_a_subclass_of_a_network_that_computes_the_same_has_the_n_grams_of_torchs(name, kind):
    make, of_torch, options = SAME[name]
    model, plain = kind(make(), last_output), kind(of_torch(E, D, batch_first=True, **options), last_output)
    plain.load_state_dict(model.state_dict())
    expected = unrolled.explain(plain, IDS, target=1)
    for rnn in (None, "rnn", model.rnn):
        assert_same(unrolled.explain(model, IDS, target=1, rnn=rnn), expected)
    assert [part.opens for part in unrolled.check(model, IDS, target=1).parts] == [True, True]


@pytest.mark.quick_diagonal(2)  # quick: every subclass
@pytest.mark.parametrize("kind", [Encoder, Twice])
@pytest.mark.parametrize("name", OTHERS)
def test_one_that_computes_otherwise_is_not_taken_for_torchs_and_is_told_what_to_write(name, kind):
    model = kind(OTHERS[name](), last_output)
    message = "computes its steps itself, and none of its modules is one step.*rnn=unrolled.as_cell"
    for rnn in (None, "rnn", model.rnn):
        with pytest.raises(UsageError, match=message):
            unrolled.explain(model, IDS, target=1, rnn=rnn)
    with pytest.raises((ParityError, UsageError), match=r"is its forward the one of torch.nn|expected torch.nn.RNN"):
        unrolled.decompose(model.rnn, model.embed(IDS))
    named = unrolled.as_cell("rnn", method="cell", state=("h", "c") if model.rnn.mode == "LSTM" else "h")
    found = unrolled.explain(model, IDS, target=1, rnn=named)
    assert abs(found.ledger.remainder) < 1e-13
    assert found.exact


@pytest.mark.parametrize("kind", [Encoder, Twice])
def test_one_whose_loop_calls_a_step_opens_by_it(kind):
    model = kind(HandByStep("RNN_TANH", activation=torch.sigmoid), last_output)
    found = unrolled.explain(model, IDS, target=1)
    assert_same(found, unrolled.explain(model, IDS, target=1, rnn=unrolled.as_cell("rnn", method="step")))
    assert [part.opens for part in unrolled.check(model, IDS, target=1).parts] == [True, True]


class PackedHand(OfLSTM):
    """Its loop reads a packed batch, as that of a user who trains on batches of several lengths."""

    def forward(self, xs, state=None):
        padded, lengths = pad_packed_sequence(xs, batch_first=True)
        outputs, state = super().forward(padded, state)
        return pack_padded_sequence(outputs, lengths, batch_first=True), state


class Packs(Encoder):
    def forward(self, ids):
        lengths = torch.full((len(ids),), ids.shape[1])
        packed, _ = self.rnn(pack_padded_sequence(self.embed(ids), lengths, batch_first=True))
        return self.head(pad_packed_sequence(packed, batch_first=True)[0][:, -1])


class Residual(nn.LSTM):
    """Adds its input to what torch's kernel gives."""

    def __init__(self):
        super().__init__(E, D, batch_first=True)

    def forward(self, xs, state=None):
        outputs, state = super().forward(xs, state)
        return torch.cat((outputs[..., :1], outputs[..., 1:] + xs), dim=-1), state


class Written(nn.Module):
    """The same by a network of torch's beside it."""

    def __init__(self, rnn):
        super().__init__()
        self.of_torch = nn.LSTM(E, D, batch_first=True)
        self.of_torch.load_state_dict(rnn.state_dict())

    def forward(self, xs):
        outputs, state = self.of_torch(xs)
        return torch.cat((outputs[..., :1], outputs[..., 1:] + xs), dim=-1), state


def test_a_hand_written_loop_over_a_packed_batch_opens_as_torchs():
    model, plain = Packs(PackedHand(0.0)), Packs(nn.LSTM(E, D, batch_first=True))
    plain.load_state_dict(model.state_dict())
    assert_same(unrolled.explain(model, IDS, target=1), unrolled.explain(plain, IDS, target=1))


@pytest.mark.parametrize("changed", ["hooked", "normalised", "half"])
def test_a_hand_written_loop_with_hooks_normalised_weights_or_in_half_precision_opens_as_torchs(changed):
    rnn, of_torch = OfLSTM(0.0), nn.LSTM(E, D, batch_first=True)
    of_torch.load_state_dict(rnn.state_dict())
    model, plain = Encoder(rnn, last_output), Encoder(of_torch, last_output)
    plain.load_state_dict(model.state_dict())
    for each in (model, plain):
        if changed == "hooked":
            each.rnn.register_forward_hook(lambda *_: None)
        elif changed == "normalised":
            nn.utils.parametrizations.weight_norm(each.rnn, "weight_hh_l0")
        else:
            each.bfloat16()
    found, expected = (unrolled.explain(each, IDS, target=1) for each in (model, plain))
    tolerance = 0.05 if changed == "half" else 1e-12
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, atol=tolerance, rtol=0)


def test_one_that_adds_its_input_to_what_torchs_kernel_gives_opens_at_the_kernel():
    model = Encoder(Residual(), last_output)
    found = unrolled.explain(model, IDS, target=1)
    written = Encoder(Residual(), last_output)
    written.load_state_dict(model.state_dict())
    written.rnn = Written(written.rnn)
    assert_same(found, unrolled.explain(written.double(), IDS, target=1))
    with pytest.raises(ParityError, match=r"is its forward the one of torch.nn"):
        unrolled.decompose(model.rnn, model.embed(IDS))
    with pytest.raises(UsageError, match="choose readout='held'"):
        unrolled.explain(model, IDS, target=1, readout="ray")


class Decoder(nn.Module):
    """A network of torch's, and a loop that does not open after it."""

    def __init__(self, rnn):
        super().__init__()
        self.embed, self.rnn, self.after = nn.Embedding(11, E), nn.GRU(E, E, batch_first=True), rnn
        self.head = nn.Linear(D, 3)
        self.double().eval()

    def forward(self, ids):
        return self.head(self.after(self.rnn(self.embed(ids))[0])[0][:, -1])


def test_one_without_steps_beside_a_network_of_torchs_is_held_and_the_other_opens():
    model = Decoder(OTHERS["another activation"]())
    found = unrolled.explain(model, IDS, target=1)
    assert_same(found, unrolled.explain(model, IDS, target=1, rnn="rnn"))
    assert abs(found.ledger.remainder) < 1e-13


class NormalisedEnd(nn.LSTM):
    """Changes its final state, which the head reads, and not its outputs."""

    def __init__(self):
        super().__init__(E, D, batch_first=True)

    def forward(self, xs, state=None):
        outputs, (h, c) = super().forward(xs, state)
        return outputs, (F.layer_norm(h, (D,)), c)


def test_one_that_changes_its_final_states_alone_is_exact():
    found = unrolled.explain(Encoder(NormalisedEnd(), lambda found: found[1][0][-1]), IDS, target=1)
    assert abs(found.ledger.remainder) < 1e-13
    assert found.exact


def test_the_generator_of_random_numbers_is_where_it_was():
    model = Twice(Hand("LSTM"), last_output)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    unrolled.explain(model, IDS, target=1)
    assert torch.equal(torch.get_rng_state(), before)
