"""Models that work in place, keep a state, train, or are not what they seem: a right account, or one clear line."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import unrolled
from toy_models import C, D, E, Model, T, V
from unrolled.cells import recurrent
from unrolled.errors import NonFiniteError, ShapeError, UsageError
from unrolled.lab.training.spectral_norm import normalise_spectrum

TOKENS = torch.randint(0, V, (2, T), generator=torch.Generator().manual_seed(0))


class Own(Model):
    """A model whose forward is given."""

    def __init__(self, act, rnn=None, width=D, **options):
        super().__init__(nn.GRU, **options)
        if rnn is not None:
            self.encoder["net"] = rnn
        self.act, self.head = act, nn.Linear(width, C)

    def forward(self, tokens, *others):
        return self.act(self, tokens, *others)


def residual(model, tokens):
    x = model.embedding(tokens).repeat(1, 1, 2)[..., :D]
    x += model.net(x)[0]
    return model.head(x.mean(1))


def activated(model, tokens):
    out, _ = model.net(model.embedding(tokens))
    F.relu_(out)
    return model.head(out.mean(1))


def stateful_in_place(model, tokens):
    out, h = model.net(model.embedding(tokens), model.h)
    model.h.copy_(h.detach())
    return model.head(out[:, -1])


def stateful(model, tokens):
    out, h = model.net(model.embedding(tokens), getattr(model, "h", None))
    model.h = h.detach()
    return model.head(out[:, -1])


@pytest.mark.parametrize("act", [residual, activated])
def test_what_a_model_changes_in_place_afterwards_is_opened_as_it_was(act):
    torch.manual_seed(0)
    model = Own(act, nn.GRU(D if act is residual else E, D, batch_first=True)).double()
    for explanation, logit in zip(
        unrolled.explain_batch(model, TOKENS, target=1), model(TOKENS)[:, 1].tolist(), strict=True
    ):
        assert explanation.ledger.logit == pytest.approx(logit, abs=1e-12)
        assert abs(explanation.ledger.remainder) < 1e-6
        assert abs(explanation.ledger.ngrams) > 1e-2


def test_arguments_that_a_model_changes_are_left_alone():
    vectors = torch.randn(2, T, E).double()
    model = Own(lambda m, x: m.head(m.net(x.mul_(2))[0][:, -1])).double()
    before = vectors.clone()
    found = unrolled.explain_batch(model, vectors, target=1)
    assert torch.equal(vectors, before)
    for explanation, logit in zip(found, model(vectors)[:, 1].tolist(), strict=True):
        assert explanation.ledger.logit == pytest.approx(logit, abs=1e-12)
        assert abs(explanation.ledger.remainder) < 1e-6


def test_a_model_that_keeps_its_state_has_the_one_that_it_had():
    model = Own(stateful).double()
    unrolled.explain_batch(model, TOKENS)
    assert not hasattr(model, "h")
    model(TOKENS)
    kept = model.h
    first = unrolled.explain_batch(model, TOKENS)
    assert model.h is kept
    assert [e.ledger for e in first] == [e.ledger for e in unrolled.explain_batch(model, TOKENS)]
    assert abs(first[0].ledger.initial) > 1e-6  # it went on from there


def test_a_buffer_that_is_written_over_is_what_it_was():
    model = Own(stateful_in_place)
    model.register_buffer("h", torch.rand(1, 2, D))
    model.double()
    before = model.h.clone()
    found = unrolled.explain_batch(model, TOKENS, target=1)
    assert torch.equal(model.h, before)
    logits = model(TOKENS)[:, 1].tolist()
    assert not torch.equal(model.h, before)  # the control: a call does write it
    for explanation, logit in zip(found, logits, strict=True):
        assert explanation.ledger.logit == pytest.approx(logit, abs=1e-12)
        assert abs(explanation.ledger.remainder) < 1e-6
        assert abs(explanation.ledger.initial) > 1e-6


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # models that were scripted are still about
def test_a_scripted_head_is_read_as_any_other_and_keeps_its_mode():
    model = Own(lambda m, t: m.head(m.net(m.embedding(t))[0][:, -1]))
    plain = nn.Sequential(nn.Linear(D, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, C))
    model.head = torch.jit.script(plain)
    model.train()
    found = unrolled.explain_batch(model, TOKENS, target=1)
    assert all(module.training for module in model.modules())
    model.head = plain
    for explanation, expected in zip(
        found, unrolled.explain_batch(model, TOKENS, target=1, readout="ray"), strict=True
    ):
        assert explanation.ledger == pytest.approx(expected.ledger, abs=1e-6)
        assert abs(explanation.ledger.remainder) < 1e-6
        assert "the readout is a ray" in explanation.notes[-1]  # no rule meets the operations of a script


@pytest.mark.parametrize("name", ["mmlstm", "gru", "elman", "mvma_g"])
def test_a_network_in_training_with_a_normalised_spectrum_is_left_as_it_was(name):
    model = Own(lambda m, t: m.head(m.net(m.embedding(t))[0][:, -1]), recurrent(name, E, D, 2, batch_first=True))
    model = normalise_spectrum(model.double()).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = unrolled.explain_batch(model, TOKENS, target=1)
    assert all(module.training for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    for explanation, logit in zip(found, model.eval()(TOKENS)[:, 1].tolist(), strict=True):
        assert explanation.ledger.logit == pytest.approx(logit, abs=1e-12)
        assert abs(explanation.ledger.remainder) < 1e-5


@pytest.mark.parametrize(
    "read", [lambda h: h / h.norm(dim=-1, keepdim=True), lambda h: h.abs().log()], ids=["norm", "logarithm"]
)
def test_a_model_that_says_nothing_of_zero_states_is_refused(read):
    model = Own(lambda m, t: m.head(read(m.net(m.embedding(t))[0][:, -1])))
    with pytest.raises(
        NonFiniteError, match=r"logit of zero states, which is the bias, is .*; expected finite"
    ) as caught:
        unrolled.explain_batch(model, TOKENS, readout="ray")
    assert "\n" not in str(caught.value)


def test_a_held_readout_needs_no_states_of_zero():
    model = Own(lambda m, t: m.head(F.normalize(m.net(m.embedding(t))[0][:, -1], dim=-1))).double()
    for found, logit in zip(unrolled.explain_batch(model, TOKENS, target=1), model(TOKENS)[:, 1].tolist(), strict=True):
        bias = model.head.bias[1].item()
        assert found.ledger.logit == pytest.approx(logit, abs=1e-12)
        assert abs(found.ledger.remainder) < 1e-12
        assert found.ledger.bias == pytest.approx(bias, abs=1e-12)
        assert found.biases == pytest.approx({"head.bias": bias}, abs=1e-12)


class OutputsAlone(nn.GRU):
    def forward(self, *args, **kwargs):
        return super().forward(*args, **kwargs)[0]


def reads_outputs(model, tokens):
    return model.head(model.net(model.embedding(tokens))[:, -1])


def calls_forward(model, tokens):
    return model.head(model.net.forward(model.embedding(tokens))[0][:, -1])


@pytest.mark.parametrize("run", [reads_outputs, calls_forward])
def test_a_network_is_opened_whatever_its_class_returns_and_however_it_is_called(run):
    net = (OutputsAlone if run is reads_outputs else nn.GRU)(E, D, batch_first=True)
    model = Own(run, net).double()
    twin = Own(lambda m, t: m.head(m.net(m.embedding(t))[0][:, -1]), nn.GRU(E, D, batch_first=True)).double()
    twin.load_state_dict(model.state_dict())
    pairs = zip(unrolled.explain_batch(model, TOKENS), unrolled.explain_batch(twin, TOKENS), strict=True)
    for found, plain in pairs:
        assert abs(found.ledger.remainder) < 1e-12
        torch.testing.assert_close(found.triangle.contributions, plain.triangle.contributions, atol=1e-12, rtol=0)
        torch.testing.assert_close(found.triangle.scores, plain.triangle.scores, atol=1e-12, rtol=0)


def test_what_is_no_model_is_named():
    with pytest.raises(UsageError, match=r"the model is a str; expected a torch.nn.Module"):
        unrolled.explain_batch("a model", TOKENS)


def test_a_sentence_of_no_tokens_among_others_is_named():
    with pytest.raises(ShapeError, match="a sentence of the batch has no tokens; expected at least one"):
        unrolled.explain_batch(Model(packed=True), TOKENS, torch.tensor([3, 0]))


def test_a_network_is_named_by_its_path_or_itself():
    with pytest.raises(UsageError, match="rnn is an int; expected the network's path"):
        unrolled.explain_batch(Model(), TOKENS, rnn=3)


def test_an_exact_expansion_that_drowns_in_rounding_says_so():
    torch.manual_seed(0)
    model = Own(lambda m, t: m.head(m.net(m.embedding(t))[0][:, -1]), nn.RNN(E, 32, batch_first=True), width=32)
    for weight in model.net.parameters():
        weight.data.mul_(5)
    tokens = torch.randint(0, V, (1, 150))
    found = unrolled.explain(model, tokens, expansion="gates")
    assert not found.exact  # the expansion is, these numbers are not
    assert found.residual > 1e-3
    assert "use float64" in found.notes[0]
    assert unrolled.explain(model, tokens[:, :5], expansion="gates").notes == ()


def test_a_target_has_the_name_of_its_function_if_that_is_one():
    def second(out):
        return out[:, 1]

    assert unrolled.explain(Model(), TOKENS[:1], target=second).target == "second"
    assert unrolled.explain(Model(), TOKENS[:1], target=lambda out: out[:, 1]).target == "the target"


def test_a_deep_bidirectional_network_that_nothing_reads_is_accounted_for_by_the_bias():
    class Dead(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(3, 4, 2, batch_first=True, bidirectional=True)
            self.inner, self.outer = nn.Linear(8, 5), nn.Linear(5, 2)
            nn.init.constant_(self.inner.bias, -100.0)  # every unit of the relu is off

        def forward(self, values):
            return self.outer(torch.relu(self.inner(self.rnn(values)[0][:, -1])))

    model, values = Dead(), torch.randn(1, 5, 3)
    ledger = unrolled.explain(model, values, target=1).ledger
    assert (ledger.ngrams, ledger.initial, ledger.remainder) == (0.0, 0.0, 0.0)
    assert ledger.bias == pytest.approx(model(values)[0, 1].item())
