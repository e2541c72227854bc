"""Whatever a forward pass changes in a model, explain and account give it back: deepcopy and the next step work."""

from __future__ import annotations

import copy
from collections import Counter, OrderedDict, defaultdict, deque

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from toy_models import Model
from unrolled.errors import UsageError

V, E, D = 20, 5, 7
TOKENS = torch.randint(0, V, (2, 6), generator=torch.Generator().manual_seed(0))
CALLS = [unrolled.explain_batch, unrolled.account]


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(V, E), nn.GRU(E, D, batch_first=True), nn.Linear(D, 2)

    def forward(self, tokens):
        self.touch(tokens)
        states, last = self.rnn(self.embed(tokens))
        self.after(states, last)
        return self.head(states.mean(1))

    def touch(self, tokens):
        pass

    def after(self, states, last):
        pass


class WeightDrop(Base):
    """The wrapper of many language models: the weight is set anew in every forward pass."""

    def __init__(self):
        super().__init__()
        self.raw = nn.Parameter(self.rnn.weight_hh_l0.detach().clone())
        del self.rnn._parameters["weight_hh_l0"]
        self.rnn.weight_hh_l0 = F.dropout(self.raw, 0.5, training=False).detach()

    def touch(self, tokens):
        self.rnn._parameters.pop("weight_hh_l0", None)
        self.rnn.weight_hh_l0 = nn.Parameter(F.dropout(self.raw, 0.5, self.training))


class Containers(Base):
    """Everything that a class of Python may hold, nested."""

    def __init__(self):
        super().__init__()
        self.history, self.by_name, self.recent = [], {"lists": [[1], {2}]}, deque([0], maxlen=3)
        self.counts, self.groups, self.ordered = Counter("ab"), defaultdict(list), OrderedDict(b=1, a=2)
        self.seen, self.pair = {1}, ([], {})
        self.cache = Cache()

    def after(self, states, last):
        self.history.append(states)
        self.by_name["lists"][0].append(states)
        self.by_name["lists"][1].add(len(self.history))
        self.by_name["new"] = last
        self.recent.append(last)
        self.counts["a"] += 1
        self.groups["x"].append(states)
        self.ordered.move_to_end("b")
        self.seen.add(9)
        self.pair[0].append(last)
        self.cache.put(states)
        self.last = states
        del self.seen


class Cache:
    def __init__(self):
        self.items, self.calls, self.total = {}, 0, torch.zeros(())

    def put(self, value):
        self.calls += 1
        self.items[self.calls] = value
        self.total += value.detach().sum().float()


class Flags(Base):
    """Changes modes, flags, hooks, submodules and tensors in place."""

    def __init__(self):
        super().__init__()
        self.memory = torch.zeros(3)
        self.register_buffer("calls", torch.zeros(()))
        self.drop = nn.Dropout(0.5)
        self.limited = nn.Embedding(V, E, max_norm=0.1)

    def touch(self, tokens):
        self.drop.train()
        self.drop.eval()
        self.rnn.train(self.training)
        self.head.weight.requires_grad_(not self.head.weight.requires_grad)
        self.memory += 1
        self.calls += 1
        self.limited(tokens)
        self.head.register_forward_hook(lambda *_: None)
        self.scratch = nn.Linear(2, 2)
        self.register_buffer("late", torch.ones(2))
        self.rnn.note = "touched"


class RePointed(Base):
    """Sets the numbers of a parameter in every forward pass."""

    def __init__(self):
        super().__init__()
        self.raw = nn.Parameter(self.rnn.weight_hh_l0.detach().clone())

    def touch(self, tokens):
        self.rnn.weight_hh_l0.data = self.raw.data * 0.5


def fingerprint(model):
    """All that belongs to a model, in a form that can be compared."""

    def plain(value):
        if isinstance(value, torch.Tensor):
            return ("tensor", value.detach().clone().tolist(), value.requires_grad, value.grad_fn is None)
        if isinstance(value, dict):
            return [(key, plain(each)) for key, each in value.items()]
        if isinstance(value, list | tuple | deque):
            return [plain(each) for each in value]
        return plain(vars(value)) if isinstance(value, Cache) else repr(value)

    return [
        (name, [(key, plain(each)) for key, each in sorted(vars(module).items()) if key != "_modules"])
        for name, module in model.named_modules()
    ]


@pytest.mark.quick_diagonal(4)  # quick: every kind, every readout
@pytest.mark.parametrize("readout", ["held", "ray", None])
@pytest.mark.parametrize("kind", [WeightDrop, Containers, Flags, RePointed])
@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was_and_trains_on(kind, readout, training):
    model = kind().train(training)
    model.embed.eval()
    before, flags = fingerprint(model), [p.requires_grad for p in model.parameters()]
    names = list(model.state_dict())
    if readout is None:
        unrolled.account(model, TOKENS, target=1)
    else:
        unrolled.explain_batch(model, TOKENS, target=1, readout=readout)
    assert fingerprint(model) == before
    assert [p.requires_grad for p in model.parameters()] == flags
    assert list(model.state_dict()) == names
    if kind is not WeightDrop:  # whose own forward leaves a copy that has a graph
        copy.deepcopy(model)
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    model(TOKENS)[:, 1].sum().backward()
    optimiser.step()


@pytest.mark.parametrize("call", CALLS)
def test_a_copy_can_be_made_afterwards(call):
    model = Containers()
    call(model, TOKENS, target=1)
    twin = copy.deepcopy(model)
    assert twin.history == []
    model(TOKENS)
    with pytest.raises(RuntimeError, match="deepcopy"):  # the control: the model's own pass leaves a graph behind
        copy.deepcopy(model)


@pytest.mark.parametrize("call", CALLS)
def test_every_run_starts_from_what_the_model_holds(call):
    """A cell that goes on from its last state gives one output, however often explain runs it."""

    class GoesOn(Base):
        def __init__(self):
            super().__init__()
            self.state = {"h": torch.zeros(1, 2, D)}

        def forward(self, tokens):
            states, self.state["h"] = self.rnn(self.embed(tokens), self.state["h"])
            return self.head(states.mean(1))

    model = GoesOn()
    model.state["h"] = torch.ones(1, 2, D) / 2
    found = call(model, TOKENS, target=1)
    assert torch.equal(model.state["h"], torch.ones(1, 2, D) / 2)
    for one, logit in zip(found, model(TOKENS)[:, 1].tolist(), strict=True):
        output = one.ledger.logit if call is unrolled.explain_batch else float(one.output)
        assert output == pytest.approx(logit, abs=1e-6)
        assert abs(float(one.ledger.remainder if call is unrolled.explain_batch else one.remainder)) < 1e-6


def test_a_model_that_calls_itself_keeps_what_it_gathers_on_the_way():
    class Recursive(Base):
        def __init__(self):
            super().__init__()
            self.parts = []

        def forward(self, tokens, depth=2):
            if depth:
                self.parts.append(depth)
                return self(tokens, depth - 1)
            assert self.parts == [2, 1]
            return super().forward(tokens)

    model = Recursive()
    unrolled.explain_batch(model, TOKENS)
    assert model.parts == []


def test_it_is_given_back_after_an_error_in_the_middle():
    class Fails(Containers):
        def after(self, states, last):
            super().after(states, last)
            if states.requires_grad:
                raise RuntimeError("the model's own")

    model = Fails().train()
    before = fingerprint(model)
    with pytest.raises(RuntimeError, match="the model's own"):
        unrolled.explain_batch(model, TOKENS)
    assert fingerprint(model) == before


def test_modes_hooks_numbers_and_weights_are_as_they_were():
    model = Model(nn.LSTM, "attention", "norm", num_layers=2, dropout=0.3)
    model.train()
    model.head.eval()
    seen = []
    model.net.register_forward_hook(lambda *_: seen.append(1))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    hooks = dict(model.net._forward_hooks)
    modes = [m.training for m in model.modules()]
    grad, seed = torch.is_grad_enabled(), torch.get_rng_state()
    unrolled.explain_batch(model, TOKENS, target=1)
    assert [m.training for m in model.modules()] == modes
    assert dict(model.net._forward_hooks) == hooks
    assert "forward" not in model.net.__dict__
    assert torch.is_grad_enabled() == grad
    assert torch.equal(seed, torch.get_rng_state())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_modes_and_hooks_are_as_they_were_after_an_error_too():
    model = Model(nn.GRU)
    model.train()
    with pytest.raises(UsageError, match="target is 9; expected 0 to 2"):
        unrolled.explain_batch(model, TOKENS, target=9)
    assert model.training
    assert not model.net._forward_hooks
    assert "forward" not in model.net.__dict__


def test_a_forward_that_was_wrapped_on_the_network_stays_wrapped():
    model = Model(nn.GRU)
    own, calls = model.net.forward, []

    def wrapper(*args, **kwargs):
        calls.append(1)
        return own(*args, **kwargs)

    model.net.forward = wrapper
    unrolled.explain_batch(model, TOKENS, target=1)
    assert model.net.__dict__["forward"] is wrapper
    with pytest.raises(RuntimeError, match="the target's own"):
        unrolled.explain_batch(model, TOKENS, target=fails_when_replayed)
    assert model.net.__dict__["forward"] is wrapper
    assert calls


def fails_when_replayed(out):
    if torch.is_grad_enabled():
        raise RuntimeError("the target's own")
    return out[:, 0]
