"""Readouts with a jump: a right account, or a refusal that names the jump; never a remainder as large as the logit."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UnsupportedOperationError

V, E, D, C = 20, 5, 7, 3
TOKENS = torch.randint(0, V, (1, 6), generator=torch.Generator().manual_seed(0))


class Reader(nn.Module):
    def __init__(self, read):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(V, E), nn.GRU(E, D, batch_first=True), nn.Linear(D, C)
        self.again = nn.Embedding(C, D)
        self.read = read

    def forward(self, tokens):
        return self.read(self, self.rnn(self.embed(tokens))[0])


def fed_back(model, states):
    chosen = model.head(states[:, 2]).argmax(-1)
    return model.head(states[:, -1] + model.again(chosen))


READS = {
    "rounded": lambda m, h: m.head((8 * h).round().mean(1)),
    "rounded beside": lambda m, h: m.head(h.mean(1) + (8 * h).round().mean(1)),
    "masked where zero": lambda m, h: m.head(h.masked_fill(h == 0, -1e9).amax(1)),
    "fed back": fed_back,
    "signs": lambda m, h: m.head(h.sign().sum(1)),
    "thresholds": lambda m, h: m.head((h > 0.1).to(h.dtype).sum(1)),
    "gated by a threshold": lambda m, h: m.head((h * (h > 0.1).to(h.dtype)).sum(1)),
    "thresholds beside": lambda m, h: m.head(h.sum(1) + (h > 0.1).to(h.dtype).sum(1)),
}


def closes(found, model):
    assert found.ledger.logit == pytest.approx(float(model(TOKENS)[0, 1].detach()), abs=1e-12)
    return abs(found.ledger.remainder) < 1e-9 * max(1.0, abs(found.movement))


REFUSED = {
    ("rounded", "held"): "round",
    ("rounded", "ray"): "round",
    ("rounded beside", "ray"): "round",
    ("thresholds", "held"): "gt",
    ("thresholds", "ray"): "gt",
    ("gated by a threshold", "ray"): "gt",
    ("thresholds beside", "ray"): "gt",
}
"""Where the target jumps between states of zero and the network's own, and by which operation."""


@pytest.mark.quick_diagonal(2)  # quick: every target, both readouts
@pytest.mark.parametrize("readout", ["held", "ray"])
@pytest.mark.parametrize("name", READS)
def test_a_jump_is_accounted_for_or_refused_by_name(name, readout):
    model = Reader(READS[name]).double()
    if operation := REFUSED.get((name, readout)):
        with pytest.raises(UnsupportedOperationError, match=rf"jumps between states of zero.*\(.*{operation}") as told:
            unrolled.explain(model, TOKENS, target=1, readout=readout)
        assert "\n" not in str(told.value)
        assert ("readout='held'" in str(told.value)) == (readout == "ray")  # advice that was not followed yet
        return
    found = unrolled.explain(model, TOKENS, target=1, readout=readout)
    assert closes(found, model)
    assert found.closes


def test_a_mask_of_zero_states_leaves_the_bias_alone():
    """The sentence encoder that masks states of zero: a bias of -1e9 and a remainder of 1e9 in former times."""
    model = Reader(READS["masked where zero"]).double()
    held = unrolled.explain(model, TOKENS, target=1)
    ray = unrolled.explain(model, TOKENS, target=1, readout="ray")
    bias = float(model.head.bias[1].detach())
    assert held.ledger.bias == pytest.approx(bias, abs=1e-12)
    assert ray.ledger.bias == pytest.approx(bias, abs=1e-5)
    assert held.notes == ()
    assert "jumps at states of zero" in ray.notes[0]
    torch.testing.assert_close(held.triangle.contributions, ray.triangle.contributions, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "held"), [("rounded beside", "round"), ("thresholds beside", "gt"), ("fed back", "argmax")]
)
def test_what_is_held_and_added_is_noted(name, held):
    found = unrolled.explain(Reader(READS[name]).double(), TOKENS, target=1)
    assert f"results that depend on the states and are held: {held}" in found.notes[0]
    assert abs(found.biases[held]) > 1e-3
    assert unrolled.explain(Reader(READS["gated by a threshold"]).double(), TOKENS, target=1).notes == ()
