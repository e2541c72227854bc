"""A step of one's own whose state has the axes of torch's, (layers, examples, units), has the n-grams of one that
keeps its examples first.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UnsupportedOperationError

WORDS, E = 9, 4
LAYERS = (1, 2, 3)
BATCHES = (1, 2, 3)


class Stack(nn.Module):
    """Two gates a layer; the state is stacked over layers in front of the examples."""

    def __init__(self, layers):
        super().__init__()
        self.embed = nn.Embedding(WORDS, E)
        self.read = nn.ModuleList(nn.Linear(2 * E, 2 * E) for _ in range(layers))

    def forward(self, x, h):
        states = []
        for read, before in zip(self.read, h, strict=True):
            gate, content = read(torch.cat([x, before], -1)).chunk(2, -1)
            x = torch.lerp(before, torch.tanh(content), torch.sigmoid(gate))
            states.append(x)
        return torch.stack(states)


class ExamplesFirst(Stack):
    def forward(self, x, h):
        return super().forward(x, h.transpose(0, 1)).transpose(0, 1)


class OutputBeside(Stack):
    """Returns an output of (examples, units) beside the state."""

    def forward(self, x, h):
        states = super().forward(x, h)
        return states[-1], states


class ReadsIds(Stack):
    def forward(self, x, h):
        return super().forward(self.embed(x), h)


class TwoStates(Stack):
    def forward(self, x, h, c):
        c = super().forward(x, c)
        return h + c, c


class Reads(nn.Module):
    """Calls a step on each word and reads the last layer's state."""

    def __init__(self, kind, layers):
        super().__init__()
        torch.manual_seed(0)
        self.step, self.layers, self.head = kind(layers), layers, nn.Linear(E, 2)
        self.double()

    def forward(self, ids):
        h = torch.zeros(self.layers, len(ids), E, dtype=torch.float64)
        c = h
        if isinstance(self.step, ExamplesFirst):
            h = h.transpose(0, 1)
        for word in ids.unbind(1):
            x = word if isinstance(self.step, ReadsIds) else self.step.embed(word)
            if isinstance(self.step, TwoStates):
                h, c = self.step(x, h, c)
            elif isinstance(self.step, OutputBeside):
                _, h = self.step(x, h)
            else:
                h = self.step(x, h)
        return self.head(h[:, -1] if isinstance(self.step, ExamplesFirst) else h[-1])


def ids(batch):
    return torch.randint(WORDS, (batch, 4), generator=torch.Generator().manual_seed(batch))


@pytest.mark.quick_diagonal(2)  # quick: every batch, every number of layers, every kind
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("kind", [Stack, OutputBeside, ReadsIds])
def test_examples_behind_layers_have_the_ngrams_of_examples_in_front(kind, layers, batch):
    found, expected = (
        unrolled.explain_batch(Reads(each, layers), ids(batch), target=1) for each in (kind, ExamplesFirst)
    )
    assert len(found) == len(expected) == batch
    for one, other, row in zip(found, expected, ids(batch), strict=True):
        assert one.notes == ()
        assert list(one.tokens) == list(other.tokens) == [str(int(each)) for each in row]
        bands = (each.triangle.contribution_band for each in (one, other))
        torch.testing.assert_close(*bands, rtol=0, atol=1e-12)
        assert float(one.triangle.contribution_band.abs().sum()) > 0


@pytest.mark.parametrize("kind", [nn.GRUCell, nn.RNNCell])
@pytest.mark.parametrize("batch", BATCHES)
def test_a_step_of_several_cells_has_the_contributions_of_the_cells_opened_one_by_one(kind, batch):
    class OfCells(Stack):
        def __init__(self, layers):
            super().__init__(layers)
            self.read = nn.ModuleList(kind(E, E) for _ in range(layers))

        def forward(self, x, h):
            states = []
            for cell, before in zip(self.read, h, strict=True):
                x = cell(x, before)
                states.append(x)
            return torch.stack(states)

    model = Reads(OfCells, 2)
    whole, apart = (
        unrolled.explain_batch(model, ids(batch), target=1, rnn=rnn)
        for rnn in (unrolled.as_cell("step"), ["step.read.0", "step.read.1"])
    )
    for one, other in zip(whole, apart, strict=True):
        torch.testing.assert_close(one.triangle.contributions, other.triangle.contributions, rtol=0, atol=1e-12)


class Gained(Stack):
    """Scales each layer by a number or a vector that the model computes: an argument with the layers first."""

    def __init__(self, layers, width=E):
        super().__init__(layers)
        self.gain = nn.Parameter(torch.linspace(-1.0, 1.0, layers * width).reshape(layers, width))

    def gains(self):
        return torch.sigmoid(self.gain).squeeze(1)

    def forward(self, x, h, gains):
        states = super().forward(x, h)
        return states * gains.reshape(len(gains), 1, -1)


class GainedInside(Gained):
    """The same, of its own parameters."""

    def forward(self, x, h):
        return super().forward(x, h, self.gains())


class ReadsGained(Reads):
    def __init__(self, kind, layers, width, known):
        super().__init__(lambda count: kind(count, width), layers)
        self.known = known

    def forward(self, ids):
        h = torch.zeros(self.layers, len(ids), E, dtype=torch.float64)
        gains = self.step.gains()
        for word in ids.unbind(1):
            x = self.step.embed(word)
            if isinstance(self.step, GainedInside):
                h = self.step(x, h)
            else:
                h = self.step(x, h, gains if self.known else self.step.gains())
        return self.head(h[-1])


@pytest.mark.quick_diagonal(2)  # quick: every shape, both widths, computed once and at each step
@pytest.mark.parametrize("known", [True, False], ids=["computed once", "computed at each step"])
@pytest.mark.parametrize("width", [1, E], ids=["numbers", "vectors"])
@pytest.mark.parametrize(("layers", "batch"), [(1, 3), (2, 1), (2, 3), (3, 2)])
def test_what_is_given_for_each_layer_does_not_make_layers_examples(layers, batch, width, known):
    found, expected = (
        unrolled.explain_batch(ReadsGained(kind, layers, width, known), ids(batch), target=1)
        for kind in (Gained, GainedInside)
    )
    assert len(found) == len(expected) == batch
    for one, other, row in zip(found, expected, ids(batch), strict=True):
        assert one.notes == ()
        assert list(one.tokens) == list(other.tokens) == [str(int(each)) for each in row]
        bands = (each.triangle.contribution_band for each in (one, other))
        torch.testing.assert_close(*bands, rtol=0, atol=1e-12)
        assert float(one.triangle.contribution_band.abs().sum()) > 0


def test_two_stacked_states_sum_to_the_output():
    model = Reads(TwoStates, 2)
    for one, output in zip(unrolled.explain_batch(model, ids(3), target=1), model(ids(3))[:, 1], strict=True):
        parts = one.ledger.ngrams + one.ledger.initial + one.ledger.bias
        assert parts == pytest.approx(output.item(), abs=1e-12)


class Channels(nn.Module):
    """Reads by a convolution, then lets channels decay at rates that a vector gives: (batch, channels, places)."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.step, self.head = nn.Embedding(WORDS, 3 * E), Decay(), nn.Linear(3 * E, 2)
        self.double()

    def forward(self, ids):
        h = torch.tanh(self.embed(ids).sum(1)).view(len(ids), 3, E)
        for rate in torch.linspace(0.1, 0.9, 12).double().view(4, 3):
            h = self.step(h, rate)
        return self.head(h.flatten(1))


class Decay(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.7))

    def forward(self, state, rate):
        return torch.tanh(self.scale * rate[:, None] * state)


def test_a_vector_of_rates_does_not_make_channels_examples():
    found = unrolled.explain_batch(Channels(), ids(2), target=1, rnn=unrolled.as_cell("step"))
    assert len(found) == 2
    for one, output in zip(found, Channels()(ids(2))[:, 1], strict=True):
        parts = one.ledger.ngrams + one.ledger.initial + one.ledger.bias
        assert parts == pytest.approx(output.item(), abs=1e-12)


@pytest.mark.parametrize("batch", [2, 4])
def test_what_is_known_of_each_place_does_not_make_places_examples(batch):
    class Places(Channels):
        """A state of (examples, places, units), and vectors of places that no step changes."""

        def __init__(self):
            super().__init__()
            self.step = Moved()
            self.register_buffer("known", torch.linspace(-1.0, 1.0, 3 * E).reshape(3, E))
            self.double()

        def forward(self, ids):
            h = torch.tanh(self.embed(ids).sum(1)).view(len(ids), 3, E)
            for _ in range(3):
                h = self.step(h, self.known)
            return self.head(h.flatten(1))

    class Moved(nn.Module):
        def __init__(self):
            super().__init__()
            self.keep = nn.Linear(E, E)

        def forward(self, state, known):
            return torch.tanh(self.keep(state) + known)

    model = Places()
    found = unrolled.explain_batch(model, ids(batch), target=1, rnn=unrolled.as_cell("step"))
    alone = unrolled.explain_batch(model, ids(batch)[:1], target=1, rnn=unrolled.as_cell("step"))
    assert len(found) == batch
    assert found[0].ledger.ngrams == pytest.approx(alone[0].ledger.ngrams, abs=1e-12)
    for one, output in zip(found, model(ids(batch))[:, 1], strict=True):
        parts = one.ledger.ngrams + one.ledger.initial + one.ledger.bias
        assert parts == pytest.approx(output.item(), abs=1e-12)


def test_a_stacked_state_that_mixes_its_examples_is_refused():
    class Mixes(Stack):
        def forward(self, x, h):
            return super().forward(x + x.mean(0), h)

    with pytest.raises(UnsupportedOperationError, match=r"a row of the batch changes another one|rows it fails"):
        unrolled.explain_batch(Reads(Mixes, 2), ids(3), target=1)
