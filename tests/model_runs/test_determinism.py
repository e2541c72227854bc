"""A forward that draws at random is refused by the name of what draws, or explained for the draw of one seed."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from unrolled.errors import RandomOperationError, UnrolledError, UsageError
from unrolled.model_runs.random_generators import RandomGenerators, checked_seed

V, E, D, C = 20, 5, 7, 3
TOKENS = torch.randint(0, V, (2, 6), generator=torch.Generator().manual_seed(0))


class Reader(nn.Module):
    """A model whose four places can each be given a function that draws."""

    def __init__(self, vectors=None, states=None, logits=None, rnn=None):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head = nn.Embedding(V, E), nn.Linear(D, C)
        self.rnn = rnn or nn.GRU(E, D, batch_first=True)
        same = nn.Identity()
        self.vectors, self.states, self.logits = vectors or same, states or same, logits or same

    def forward(self, tokens):
        states, _ = self.rnn(self.vectors(self.embed(tokens)))
        return self.logits(self.head(self.states(states).mean(1)))


class Prenet(nn.Module):
    """Two layers whose dropout is always on, as in a speech synthesiser."""

    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, width)])

    def forward(self, x):
        for layer in self.layers:
            x = F.dropout(layer(x).relu(), p=0.5, training=True)
        return x


class Noisy(nn.GRU):
    """A network that forgets the mode."""

    def forward(self, x, h=None):
        states, last = super().forward(F.dropout(x, 0.25), h)
        return states, last


class Sampling(nn.Module):
    """Draws a class and adds its vector."""

    def __init__(self, width):
        super().__init__()
        self.table = nn.Embedding(C, width)
        self.score = nn.Linear(width, C)

    def forward(self, x):
        drawn = torch.distributions.Categorical(logits=self.score(x)).sample()
        return x + self.table(drawn)


class OwnGenerator(nn.Module):
    def __init__(self, generator):
        super().__init__()
        self.generator = generator

    def forward(self, x):
        if isinstance(self.generator, torch.Generator):
            return x * torch.rand(x.shape[-1], generator=self.generator)
        return x * self.generator.random()


DRAWN = {
    "prenet": (lambda: Reader(vectors=Prenet(E)), r"dropout of 0\.5 in vectors draws"),
    "states": (lambda: Reader(states=Prenet(D)), r"dropout of 0\.5 in states draws"),
    "bare": (lambda: Reader(states=lambda h: F.dropout(h)), r"dropout of 0\.5 draws"),
    "alpha": (lambda: Reader(states=lambda h: F.alpha_dropout(h, 0.3, True)), r"alpha_dropout of 0\.3 draws"),
    "inside": (lambda: Reader(rnn=Noisy(E, D, batch_first=True)), r"dropout of 0\.25 in rnn draws"),
    "noise": (lambda: Reader(vectors=lambda x: x + torch.randn_like(x)), r"randn_like draws"),
    "in place": (lambda: Reader(logits=lambda x: x + torch.empty(C).uniform_()), r"uniform draws"),
    "sampling": (lambda: Reader(states=Sampling(D)), r"multinomial in states draws"),
    "python": (lambda: Reader(vectors=lambda x: x * random.random()), r"Python's random draws"),
    "numpy": (lambda: Reader(states=lambda x: x * np.random.rand()), r"numpy\.random draws"),
    "own": (lambda: Reader(states=OwnGenerator(torch.Generator())), r"a generator of the model's own draws"),
    "own numpy": (
        lambda: Reader(states=OwnGenerator(np.random.default_rng(0))),
        r"a generator of the model's own draws",
    ),
    "own python": (lambda: Reader(states=OwnGenerator(random.Random(0))), r"a generator of the model's own draws"),
}
CALLS = {
    "explain": lambda model, **options: unrolled.explain_batch(model, TOKENS, target=1, **options),
    "ray": lambda model, **options: unrolled.explain_batch(model, TOKENS, target=1, readout="ray", **options),
    "account": lambda model, **options: unrolled.account(model, TOKENS, target=1, **options),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", DRAWN)
def test_a_forward_that_draws_is_refused_by_name(name, call):
    make, message = DRAWN[name]
    if (name, call) == ("inside", "account"):
        pytest.skip("an account reads the weights of a network of torch.nn's type as torch.nn would")
    with pytest.raises(RandomOperationError, match=message) as caught:
        CALLS[call](make().double())
    assert "pass seed=0" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.quick_diagonal(3)  # quick: every operation that draws, every call
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", [name for name in DRAWN if name != "inside"])
def test_with_a_seed_one_draw_is_explained(name, call):
    if (name, call) == ("sampling", "ray"):
        pytest.skip("what is sampled changes along the ray: the target jumps")
    model = DRAWN[name][0]().double().eval()
    found = CALLS[call](model, seed=3)
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)
    own = getattr(model.states, "generator", None)
    if own is not None:
        RandomGenerators([own]).seed(3)
    drawn = model(TOKENS)[:, 1].tolist()
    for one, logit in zip(found, drawn, strict=True):
        output = float(one.output) if call == "account" else one.ledger.logit
        assert output == pytest.approx(logit, abs=1e-12)
        assert abs(float(one.remainder if call == "account" else one.ledger.remainder)) < 1e-9
    assert not found[0].deterministic
    other = CALLS[call](model, seed=4)
    assert (other[0].output if call == "account" else other[0].ledger.logit) != pytest.approx(drawn[0], abs=1e-6)


def test_the_generators_are_left_where_they_were():
    own = torch.Generator()
    models = [make() for make, _ in DRAWN.values()] + [Reader(states=OwnGenerator(own))]
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy(), own.get_state()
    for model in models:
        for options in ({}, {"seed": 5}):
            with contextlib.suppress(UnrolledError):
                unrolled.explain_batch(model, TOKENS, **options)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert (np.random.get_state()[1] == before[2]).all()
    assert torch.equal(own.get_state(), before[3])


@pytest.mark.parametrize("call", CALLS)
def test_draws_that_change_nothing_pass_with_a_note(call):
    def counted(x):
        torch.rand(3)
        return x

    for one in CALLS[call](Reader(states=counted).double()):
        assert one.notes == ("the model draws random numbers (rand), though two runs gave the same output",)
        assert not one.deterministic
    for one in CALLS[call](Reader().double()):
        assert one.notes == ()
        assert one.deterministic


def test_a_coin_that_falls_on_the_same_side_twice_is_noted():
    model = Reader(states=lambda x: 2 * x if random.random() < 0.5 else x).double()
    for start in range(6):
        random.seed(start)
        sides = [random.random() < 0.5 for _ in range(2)]
        random.seed(start)
        if sides[0] != sides[1]:
            with pytest.raises(RandomOperationError, match="Python's random draws"):
                unrolled.explain_batch(model, TOKENS)
            continue
        for one in unrolled.explain_batch(model, TOKENS):
            assert "Python's random" in one.notes[0]
            assert len(one.notes) == 1  # all runs draw what the first one drew
            assert abs(one.ledger.remainder) < 1e-12


def test_a_forward_that_seeds_itself_is_not_random():
    def drawn(x):
        torch.manual_seed(1)
        return F.dropout(x, 0.5)

    for one in unrolled.explain_batch(Reader(states=drawn).double(), TOKENS):
        assert abs(one.ledger.remainder) < 1e-12
        assert not any("ray" in note for note in one.notes)


def test_a_source_that_no_seed_sets_is_named():
    model = Reader(states=lambda x: x * int.from_bytes(os.urandom(4), "little"))
    with pytest.raises(RandomOperationError, match="it draws random numbers or keeps a state"):
        unrolled.explain_batch(model, TOKENS)
    with pytest.raises(RandomOperationError, match="although seed= starts all generators anew"):
        unrolled.explain_batch(model, TOKENS, seed=0)


def test_such_a_source_is_named_where_the_network_reads_a_packed_batch():
    class Packed(Reader):
        def forward(self, tokens):
            vectors = self.embed(tokens) * int.from_bytes(os.urandom(4), "little") / 2**32
            packed = nn.utils.rnn.pack_padded_sequence(vectors, torch.full((len(tokens),), 2), batch_first=True)
            return self.head(self.rnn(packed)[1][-1])

    with pytest.raises(RandomOperationError, match="it draws random numbers or keeps a state"):
        unrolled.explain_batch(Packed(), TOKENS, target=0)


@pytest.mark.parametrize("seed", [-1, 2**32, "0", 1.5, torch.tensor([1, 2])])
def test_a_bad_seed_is_named(seed):
    with pytest.raises(UsageError, match="expected a whole number from 0"):
        unrolled.explain_batch(Reader(), TOKENS, seed=seed)
    assert checked_seed(np.int64(3)) == 3


@pytest.mark.parametrize(("readout", "extra"), [("held", 0), ("ray", 1)])
def test_the_check_costs_one_forward_pass_at_most(readout, extra, monkeypatch):
    calls = {}
    for checked in (True, False):
        model, seen = Reader(), []
        model.embed.register_forward_hook(lambda *_, seen=seen: seen.append(1))
        if not checked:
            monkeypatch.setattr("unrolled.model_runs.determinism.TwoRuns.second", lambda *_: ())
        unrolled.explain_batch(model, TOKENS, readout=readout)
        calls[checked] = len(seen)
    assert calls[True] == calls[False] + extra


DRAWS = """
import sys
import torch
import unrolled
class Draws(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = torch.nn.GRU(3, 64, batch_first=True), torch.nn.Linear(64, 2)  # two masks are never equal
    def forward(self, x):
        return self.head(torch.nn.functional.dropout(self.rnn(x)[0][:, -1], 0.5))
try:
    unrolled.explain(Draws(), torch.randn(1, 4, 3), target=1)
except unrolled.RandomOperationError as error:
    assert "dropout of 0.5 draws" in str(error)
else:
    raise AssertionError
assert "torch._dynamo" not in sys.modules
import torch._dynamo
assert "torch._dynamo" in sys.modules
"""


@pytest.mark.slow
def test_what_draws_is_named_without_loading_torchs_compiler():
    """Which takes longer than all the rest; other tests of this process have loaded it."""
    done = subprocess.run([sys.executable, "-c", DRAWS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
