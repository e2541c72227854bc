"""What stands between a model and its calls: torch.compile, weights of one call, autocast; steps called once."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from outside_judge import Model, ids, judge_account, judge_explanation, one_of
from unrolled.errors import ParityError, UsageError

V = 30


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 4)
        self.rnn = nn.LSTM(4, 5, batch_first=True)
        self.fc = nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.rnn(self.e(x))[0][:, -1])

    def head(self, h):
        return self.fc(torch.relu(h))


def compiled_head():
    """Make a reader whose head is compiled as a method; compiling loads much, so not where the file is imported."""

    class CompiledHead(Reader):
        @torch.compile(backend="eager")
        def head(self, h):
            return self.fc(torch.relu(h))

    return CompiledHead()


class CompiledNetwork(Reader):
    def __init__(self):
        super().__init__()
        self.rnn = torch.compile(self.rnn, backend="eager")


class Adapted(Reader):
    """Adds a trained difference to the recurrent weights of a base model."""

    def __init__(self):
        super().__init__()
        self.delta = nn.Parameter(torch.randn(20, 5))

    def forward(self, x):
        weights = dict(self.rnn.named_parameters())
        weights["weight_hh_l0"] = weights["weight_hh_l0"] + self.delta
        return self.head(torch.func.functional_call(self.rnn, weights, (self.e(x),))[0][:, -1])


class Styled(Reader):
    """Weights of one kind are computed from a second argument, as a hypernetwork computes them."""

    def __init__(self, name):
        super().__init__()
        self.name = name
        self.make = nn.Linear(2, self.rnn.get_parameter(name).numel())

    def forward(self, x, style):
        weights = dict(self.rnn.named_parameters())
        weights[self.name] = self.make(style).view_as(weights[self.name])
        return self.head(torch.func.functional_call(self.rnn, weights, (self.e(x),))[0][:, -1])


class Coarse(Reader):
    """An Elman network: not every processor runs an LSTM in bfloat16."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(4, 5, batch_first=True)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return super().forward(x)


class CoarseNetwork(Coarse):
    """Calls its network under autocast, once or twice; its output is float32."""

    def __init__(self, calls, on=True):
        super().__init__()
        self.calls, self.on = calls, on

    def forward(self, x):
        last = None
        for part in self.e(x).chunk(self.calls, dim=1):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.on):
                states, last = self.rnn(part, last)
        return self.head(states[:, -1].float())


MODELS = {
    name: Model(make, (ids(2, 4),), 1, (0,), alone=one_of(ids(2, 4)))
    for name, make in (("compiled head", compiled_head), ("compiled network", CompiledNetwork), ("adapted", Adapted))
}


@pytest.mark.parametrize("name", MODELS)
def test_the_account_is_right(name):
    judge_account(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_the_explanation_is_right(name):
    judge_explanation(MODELS[name])


@pytest.mark.parametrize("name", ["compiled head", "compiled network"])
def test_what_is_compiled_has_the_account_of_what_it_was_made_of(name):
    case = MODELS[name]
    model, plain = case.built(), Reader().double()
    plain.load_state_dict({key.replace("_orig_mod.", ""): value for key, value in model.state_dict().items()})
    found, expected = (unrolled.account(each, *case.args, target=1).tokens for each in (model, plain))
    torch.testing.assert_close(found, expected, atol=1e-14, rtol=0)
    assert all(part.opens for part in unrolled.check(model, *case.args, target=1).parts)


def test_weights_given_for_the_call_are_those_that_are_explained():
    case = MODELS["adapted"]
    model = case.built()
    plain = copy.deepcopy(model)
    plain.forward = lambda x: Reader.forward(plain, x)
    with torch.no_grad():
        plain.rnn.weight_hh_l0 += plain.delta
    for one in ids(2, 4).split(1):
        found, expected = (unrolled.explain(each, one, target=1) for each in (model, plain))
        torch.testing.assert_close(found.token_scores, expected.token_scores, atol=1e-12, rtol=0)
    with pytest.raises(UsageError, match="replaces the weights of its recurrent network for the call"):
        unrolled.explain(model, ids(1, 4), target=1, readout="ray")


def test_autocast_inside_a_model_is_named():
    model = Coarse()
    with pytest.raises(UsageError, match=r"switch off torch.autocast where its forward switches it on"):
        unrolled.account(model, ids(1, 9), target=1)
    with torch.no_grad():
        model.rnn.weight_hh_l0 *= 4
    with pytest.raises(ParityError, match=r"runs its recurrent network under torch.autocast"):
        unrolled.explain(model, ids(1, 9), target=1)


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("open_model", [unrolled.account, unrolled.explain])
def test_a_network_under_autocast_is_refused_by_name(open_model, calls):
    with pytest.raises(ParityError, match=r"runs its recurrent network under torch.autocast"):
        open_model(CoarseNetwork(calls), ids(1, 9), target=1)
    open_model(CoarseNetwork(calls, on=False), ids(1, 9), target=1)


class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.x, self.h = nn.Linear(4, 5), nn.Linear(5, 5)

    def step(self, x, h):
        return torch.tanh(self.x(x) + self.h(h))


class Alone(Leaky):
    def forward(self, x, h):
        return self.step(x, h)


class Loop(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.e, self.cell, self.fc = nn.Embedding(V, 4), cell, nn.Linear(5, 2)

    def forward(self, ids):
        h = F.one_hot(ids[:, 0], 5).to(self.fc.weight) * 0
        for x in self.e(ids).unbind(1):
            h = self.cell.step(x, h) if type(self.cell) is Leaky else self.cell(x, h)
        return self.fc(h)


@pytest.mark.parametrize(
    ("cell", "rnn", "named"),
    [
        (Alone, "cell", "rnn='cell'"),
        (Leaky, unrolled.as_cell("cell", method="step"), r"rnn=unrolled.as_cell\('cell', method='step'\)"),
    ],
)
def test_a_step_that_is_called_once_is_told_how_to_be_named(cell, rnn, named):
    torch.manual_seed(0)
    model, one, two = Loop(cell()).double(), torch.tensor([[3]]), torch.tensor([[3, 4]])
    with pytest.raises(UsageError, match=f"takes a state and is called once.*pass {named}"):
        unrolled.explain(model, one, target=1)
    found = unrolled.explain(model, one, target=1, rnn=rnn)
    assert len(found) == 1
    assert abs(found.ledger.remainder) < 1e-14
    assert len(unrolled.explain(model, two, target=1)) == 2


@pytest.mark.parametrize("name", ["weight_ih_l0", "weight_hh_l0", "bias_hh_l0"])
def test_weights_that_are_computed_from_an_argument_are_held_and_an_account_says_so(name):
    found = unrolled.account(Styled(name).double(), ids(1, 4), torch.ones(2).double(), target=1)
    assert any("computes the weights of a recurrent network from its arguments" in note for note in found.notes)
    assert float(found.remainder.abs().max()) < 1e-12


def test_weights_that_are_parameters_alone_have_no_such_note():
    for model in (Reader(), Adapted()):
        assert not any("computes the weights" in note for note in unrolled.account(model, ids(1, 4), target=1).notes)
