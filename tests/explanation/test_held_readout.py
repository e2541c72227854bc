"""The two readouts, held and ray: both close over every pooling and head; the held one runs the model once."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from toy_models import B, C, D, E, Model, T, V
from unrolled.errors import UnknownNameError

TOKENS = torch.randint(0, V, (B, T), generator=torch.Generator().manual_seed(0))
POOLINGS = ["last", "h_n", "mean", "max", "attention"]
LENGTHS = torch.tensor([6, 4, 1])


class Own(Model):
    """A model whose forward is given."""

    def __init__(self, act, **options):
        super().__init__(nn.GRU, **options)
        self.act = act

    def forward(self, tokens, *others):
        return self.act(self, tokens, *others)


def explained(model, readout, **options):
    lengths = (LENGTHS,) if model.packed else ()
    return unrolled.explain_batch(model, TOKENS, *lengths, target=1, readout=readout, **options)


def closes(readout, head, pool, packed, **network):
    options = {} if head is None else {"head": head}
    model = Model(nn.LSTM, pool, packed=packed, **options, **network).double()
    for found in explained(model, readout):
        assert abs(found.ledger.remainder) < 1e-12
        assert not any("ray" in note for note in found.notes)


@pytest.mark.quick_diagonal(4)  # quick: every head, every pooling, packed and not
@pytest.mark.parametrize("head", [None, "relu", "gelu", "norm"])
@pytest.mark.parametrize("pool", POOLINGS)
@pytest.mark.parametrize("packed", [False, True])
def test_the_ledger_closes(head, pool, packed):
    for network in ({"bidirectional": True}, {"num_layers": 2}):
        closes("held", head, pool, packed, **network)


@pytest.mark.slow_diagonal(4)
@pytest.mark.quick_diagonal(2)  # quick: both smooth heads, every pooling
@pytest.mark.parametrize(
    "head", [None, "gelu", *(pytest.param(each, marks=pytest.mark.slow) for each in ("relu", "norm"))]
)
@pytest.mark.parametrize("pool", POOLINGS)
def test_the_ledger_of_the_ray_closes(pool, head):
    """Its quadrature takes longest where the head has a kink or a normalisation."""
    closes("ray", head, pool, packed=pool in ("h_n", "max"), num_layers=2)
    closes("ray", head, pool, packed=pool == "mean", bidirectional=True)


@pytest.mark.parametrize("pool", ["last", "mean"])
def test_for_a_linear_head_both_are_the_weight(pool):
    model = Model(nn.GRU, pool).double()
    for held, ray in zip(explained(model, "held"), explained(model, "ray"), strict=True):
        assert held.ledger == pytest.approx(ray.ledger, abs=1e-12)
        torch.testing.assert_close(held.triangle.scores, ray.triangle.scores, rtol=1e-9, atol=1e-12)


def test_the_bias_has_parts_by_name():
    model = Model(nn.GRU, "mean", "relu").double()
    for found in explained(model, "held"):
        assert sum(found.biases.values()) == pytest.approx(found.ledger.bias, abs=1e-12)
        assert set(found.biases) == {name for name, _ in model.named_parameters() if "head" in name and "bias" in name}
    assert explained(model, "ray")[0].biases == {}


def test_what_the_model_reads_beside_the_network_is_part_of_the_bias():
    def beside(model, tokens):
        vectors = model.embedding(tokens)
        return model.head(model.net(vectors)[0][:, -1] + vectors.mean(1) @ model.skip)

    model = Own(beside).double()
    model.skip = torch.randn(E, D).double()
    for found in explained(model, "held"):
        assert abs(found.ledger.remainder) < 1e-12
        assert (
            abs(
                found.biases[
                    "encoder.embedding.weight" if "encoder.embedding.weight" in found.biases else "embedding.weight"
                ]
            )
            > 1e-3
        )


def test_a_held_readout_runs_the_head_once_more_for_all_outputs_together():
    model, calls = Model(nn.GRU, "mean", "relu"), []
    model.head.register_forward_hook(lambda *_: calls.append(1))
    explained(model, "held", every_class=False)
    assert len(calls) == 2
    explained(model, "held")
    assert len(calls) == 2 + 2


def test_an_operation_without_a_rule_falls_back_to_the_ray_with_a_note():
    model = Own(lambda m, t: m.head(torch.special.i0(m.net(m.embedding(t))[0][:, -1]))).double()
    for found, ray in zip(explained(model, "held"), explained(model, "ray"), strict=True):
        assert found.ledger == ray.ledger
        assert "the readout is a ray from states of zero" in found.notes[-1]
        assert "torch.special.i0" in found.notes[-1]
        assert abs(found.ledger.remainder) < 1e-9


@pytest.mark.parametrize("name", ["softmax", "exp"])
def test_a_target_that_reads_the_model_by_a_held_result_only_is_noted_by_its_name(name):
    target = {"softmax": lambda out: out.softmax(1)[:, 1], "exp": lambda out: out[:, 1].exp()}[name]
    note = unrolled.explain(Model(nn.GRU, "last").double(), TOKENS[:1], target=target).notes[0]
    assert note.startswith("the readout is a ray from states of zero")
    assert note.endswith(f"held results only, if at all (held last: {name})")


def test_another_network_behind_the_one_that_is_opened():
    def two(model, tokens):
        states = model.net(model.embedding(tokens))[0]
        return model.head(model.second(states)[0].mean(1))

    model = Own(two).double()
    model.second = nn.LSTM(D, D, 2, batch_first=True, bidirectional=True).double()
    model.head = nn.Linear(2 * D, C).double()
    path = next(name for name, module in model.named_modules() if module is model.net)
    for found in explained(model, "held", rnn=path):
        assert abs(found.ledger.remainder) < 1e-12
        assert not any("ray" in note for note in found.notes)
        assert any(name.startswith("second.bias") for name in found.biases)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_coarser_types(dtype):
    model = Model(nn.LSTM, "attention", "gelu").to(dtype)
    bound = 1e-5 if dtype == torch.float32 else 1e-2
    for found in explained(model, "held", expansion="operating"):
        assert abs(found.ledger.remainder) < bound
        coarse = "computes them in a coarse type; convert the model: model.float()"
        assert any(coarse in note for note in found.notes) == (dtype == torch.bfloat16)


def test_an_unknown_readout_is_named():
    with pytest.raises(UnknownNameError, match="unknown readout 'hold'; did you mean 'held'"):
        explained(Model(nn.GRU), "hold")


def test_a_quadrature_that_has_not_converged_is_noted():
    torch.manual_seed(0)
    model = Model(nn.LSTM, "last").double()
    for weight in model.net.parameters():
        weight.data.mul_(100)
    found = explained(model, "held", expansion="path")
    assert any(
        "the quadrature of the expansion path has not converged" in note for each in found for note in each.notes
    )
    secant = explained(model, "held", expansion="secant")
    assert not any("quadrature" in note for each in secant for note in each.notes)
    assert max(abs(each.ledger.remainder) for each in secant) < 1e-6


def test_growth_is_noted_beside_the_cancellation():
    torch.manual_seed(0)
    model = Model(nn.GRU, "last").double()
    found = explained(model, "held")[0]
    sizes = float(found.triangle.contributions.abs().sum())
    assert found.cancellation == pytest.approx(sizes / abs(found.ledger.ngrams))
    for weight in model.net.parameters():
        weight.data.mul_(30)
    tokens = torch.randint(0, V, (1, 60))
    loud = unrolled.explain(model, tokens, target=1)
    assert loud.cancellation > 30
    assert any("times as large as their sum: compare the expansion shares" in note for note in loud.notes)
