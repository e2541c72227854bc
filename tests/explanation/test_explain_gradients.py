"""An account needs gradients behind the network, whoever switched them off: it turns them on, or says why it cannot."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.distributions import Bernoulli, Categorical, Independent, Normal

import unrolled
from toy_models import B, D, E, Model, T, V
from unrolled.cells import recurrent
from unrolled.errors import StrictError, UnrolledError, UsageError

TOKENS = torch.randint(0, V, (B, T), generator=torch.Generator().manual_seed(0))


class Masked(nn.Module):
    """Reads whatever its caller made: token ids, a mask, weights in a list."""

    def __init__(self, cell):
        super().__init__()
        torch.manual_seed(3)
        self.embedding, self.head = nn.Embedding(V, E), nn.Linear(D, 2)
        self.rnn = recurrent(cell, E, D, batch_first=True)

    def forward(self, tokens, *, mask, options):
        out = self.rnn(self.embedding(tokens))[0]
        out = out.masked_fill(~mask[..., None], 0.0) * options["weights"][0]
        return self.head(torch.relu(out.sum(1)))


def account(model, made):
    with made():
        tokens, mask = TOKENS.clone(), torch.ones(B, T, dtype=torch.bool)
        options = {"weights": [torch.linspace(1, 2, D)]}
        return unrolled.explain_batch(model, tokens, mask=mask, options=options, target=1, expansion="operating")


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("cell", ["lstm", "mrnn", "mlstm"])
def test_it_is_the_same_where_gradients_are_off(cell, mode):
    model = Masked(cell)
    for found, expected in zip(account(model, mode), account(model, torch.enable_grad), strict=True):
        assert found.ledger == expected.ledger
        assert torch.equal(found.triangle.scores, expected.triangle.scores)
        assert abs(found.ledger.ngrams) > 1e-3
        assert abs(found.ledger.remainder) < 1e-5


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_callers_mode_is_left_on(mode):
    model = Masked("lstm")
    with mode():
        before = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        account(model, torch.enable_grad)
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled()) == before
        assert not before[0]


class Severed(Model):
    """Lets no gradient through behind its network, one way or another."""

    def __init__(self, way):
        super().__init__(nn.GRU)
        self.way = way

    def forward(self, tokens):
        match self.way:
            case "all in no_grad":
                with torch.no_grad():
                    return super().forward(tokens)
            case "all in inference_mode":
                with torch.inference_mode():
                    return super().forward(tokens)
            case "detached states":
                return self.head(self.net(self.embedding(tokens))[0][:, -1].detach())
            case "pooled in no_grad":
                with torch.no_grad():
                    pooled = self.net(self.embedding(tokens))[0].mean(1)
                return self.head(pooled)
            case "network in no_grad":
                with torch.no_grad():
                    states = self.net(self.embedding(tokens))[0]
                return self.head(states[:, -1])
            case "network in inference_mode":
                with torch.inference_mode():
                    states = self.net(self.embedding(tokens))[0]
                return self.head(states[:, -1].clone())
            case "mean":
                return self.head(self.net(self.embedding(tokens))[0].mean(1))
            case "constant":
                self.net(self.embedding(tokens))
                return self.head(torch.ones(len(tokens), D))


@pytest.mark.parametrize("count", [1, B])
@pytest.mark.parametrize("way", ["all in no_grad", "all in inference_mode", "detached states", "pooled in no_grad"])
def test_a_readout_without_a_gradient_is_refused(way, count):
    with pytest.raises(UsageError, match=r"no gradient flows .*no_grad.*inference_mode.*detach") as caught:
        unrolled.explain_batch(Severed(way), TOKENS[:count], target=1, readout="ray")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("way", ["all in no_grad", "detached states", "pooled in no_grad"])
def test_a_held_readout_needs_no_gradient_of_the_model(way):
    plain = {"all in no_grad": Model(nn.GRU), "pooled in no_grad": Severed("mean")}.get(
        way, Severed("network in no_grad")
    )
    model = Severed(way)
    for found, expected in zip(
        unrolled.explain_batch(model, TOKENS, target=1), unrolled.explain_batch(plain, TOKENS, target=1), strict=True
    ):
        assert found.ledger == pytest.approx(expected.ledger, abs=1e-6)
        assert abs(found.ledger.ngrams) > 1e-3
        assert abs(found.ledger.remainder) < 1e-5
        assert not any("ray" in note for note in found.notes)


def test_inference_mode_behind_the_network_is_refused_with_what_a_held_run_needs():
    model = Severed("all in inference_mode")
    with pytest.raises(UsageError, match=r"no gradient flows .*a held run .*; use torch.no_grad there, or none$"):
        unrolled.explain_batch(model, TOKENS, target=1)
    with pytest.raises(UsageError, match="no gradient flows") as caught:  # a ray alone was asked for
        unrolled.explain_batch(model, TOKENS, target=1, readout="ray")
    assert "a held run" not in str(caught.value)


def test_a_target_that_leaves_torch_is_refused_and_one_that_detaches_is_refused_by_the_ray():
    with pytest.raises(UsageError, match="no gradient flows"):
        unrolled.explain_batch(Model(nn.GRU), TOKENS, target=lambda out: torch.tensor(out[:, 1].tolist()))
    with pytest.raises(UsageError, match="no gradient flows"):
        unrolled.explain_batch(Model(nn.GRU), TOKENS, target=lambda out: out.detach()[:, 1], readout="ray")


def test_a_direction_that_is_not_read_contributes_nothing():
    class OneWay(Model):
        def forward(self, tokens):
            h = self.net(self.embedding(tokens))[1]
            return self.head(torch.cat((h[0], torch.ones_like(h[1])), dim=-1))

    for found in unrolled.explain_batch(OneWay(nn.GRU, bidirectional=True), TOKENS, expansion="operating"):
        assert abs(found.ledger.remainder) < 1e-5
        assert abs(found.ledger.ngrams) > 1e-3
        assert not found.triangle.scores[1].any()


@pytest.mark.parametrize("way", ["network in no_grad", "network in inference_mode"])
def test_a_network_that_runs_without_gradients_is_explained(way):
    for found, plain in zip(
        unrolled.explain_batch(Severed(way), TOKENS, target=1),
        unrolled.explain_batch(Model(nn.GRU), TOKENS, target=1),
        strict=True,
    ):
        assert found.ledger == pytest.approx(plain.ledger, abs=1e-6)
        assert abs(found.ledger.ngrams) > 1e-3


def test_a_readout_that_does_not_depend_on_the_states_is_all_bias():
    for found in unrolled.explain_batch(Severed("constant"), TOKENS, target=1):
        assert found.ledger.ngrams == found.ledger.remainder == 0
        assert found.ledger.bias == found.ledger.logit != 0


@pytest.mark.parametrize("readout", ["held", "ray"])
def test_a_target_that_does_not_depend_on_the_states_is_noted_to_be_all_bias(readout):
    note = (
        "no gradient flows from the target to the states, and it is the same for states of zero: all of it is the bias"
    )
    for model, target in ((Severed("constant"), 1), (Model(nn.GRU), lambda out: torch.ones(len(out)))):
        found = unrolled.explain(model, TOKENS[:1], target=target, readout=readout)
        assert found.notes == (note,)
        assert found.ledger.bias == found.ledger.logit != 0
        with pytest.raises(StrictError, match=note):
            unrolled.explain(model, TOKENS[:1], target=target, readout=readout, strict=True)
    assert note not in unrolled.explain(Model(nn.GRU), TOKENS[:1], target=1, readout=readout).notes


def test_a_model_made_in_inference_mode_is_refused():
    with torch.inference_mode():
        model = Model(nn.GRU)
        with pytest.raises(UsageError, match=r"embedding.weight was made in inference mode; expected a model made"):
            unrolled.explain_batch(model, TOKENS)


class Numpy(Model):
    """Its head reads the states through numpy."""

    def forward(self, tokens):
        pooled = self.net(self.embedding(tokens))[0][:, -1]
        return self.head(torch.from_numpy(pooled.detach().numpy()))


@pytest.mark.parametrize("readout", ["held", "ray"])
def test_a_head_behind_numpy_is_refused_by_the_name_of_numpy(readout):
    with pytest.raises(UsageError, match=r"no gradient flows .*taken out of torch \(numpy\)") as caught:
        unrolled.explain(Numpy(nn.GRU), TOKENS[:1], target=1, readout=readout)
    assert "no_grad" not in str(caught.value)
    assert "a held run" not in str(caught.value)
    with pytest.raises(UsageError, match="no_grad"):
        unrolled.explain(Severed("detached states"), TOKENS[:1], target=1, readout="ray")


class Wrapped(Model):
    """Returns its logits inside something."""

    def __init__(self, wrap):
        super().__init__(nn.GRU)
        self.wrap = wrap

    def forward(self, tokens):
        return self.wrap(super().forward(tokens))


WRAPPED = {
    "lambda out: out[1][:, 0]": (lambda logits: (TOKENS, logits), lambda out: out[1][:, 0]),
    "lambda out: out['logits'][:, 0]": (
        lambda logits: {"hidden": logits[:, :1] * 2, "logits": logits},
        lambda out: out["logits"][:, 0],
    ),
    "lambda out: out['a']['b'][:, -1, 0]": (
        lambda logits: {"a": {"b": logits[:, None].expand(-1, 4, -1)}},
        lambda out: out["a"]["b"][:, -1, 0],
    ),
    "lambda out: out.logits[:, 0]": (lambda logits: Categorical(logits=logits), lambda out: out.logits[:, 0]),
    "lambda out: out[0].logits[:, 0]": (
        lambda logits: (Bernoulli(probs=logits.sigmoid()), logits[:, 0]),
        lambda out: out[0].logits[:, 0],
    ),
    "lambda out: out.base_dist.loc[:, 0]": (
        lambda logits: Independent(Normal(logits, 1.0), 1),
        lambda out: out.base_dist.loc[:, 0],
    ),
}


@pytest.mark.parametrize("code", WRAPPED)
def test_an_output_that_is_no_tensor_is_refused_with_a_target_that_works(code):
    wrap, pick = WRAPPED[code]
    model = Wrapped(wrap)
    for call in (unrolled.account, unrolled.explain):
        with pytest.raises(UnrolledError) as caught:
            call(model, TOKENS[:1])
        assert str(caught.value).endswith(f"target={code}")
        assert call(model, TOKENS[:1], target=pick).closes
    with pytest.raises(UsageError, match="the output is a NoneType") as caught:
        unrolled.account(Wrapped(lambda _: None), TOKENS[:1])
    assert "lambda" not in str(caught.value)
