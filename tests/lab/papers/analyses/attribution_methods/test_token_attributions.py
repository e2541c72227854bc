"""Attributions of words: sums that hold, references written in another way, methods that a network does not have."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from torch import nn

from unrolled.errors import UsageError
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.pooling import LastState, MeanPooling
from unrolled.lab.papers.analyses.attribution_methods.backward_rules import EPSILON
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import Explained, margin, predict
from unrolled.lab.papers.analyses.attribution_methods.token_attributions import attribute, attributor
from unrolled.lab.papers.analyses.faithfulness.deletion import delete

WORDS = 9


def classifier(encoder, pooling=None, classes=3, seed=0):
    torch.manual_seed(seed)
    directions = 2 if encoder.bidirectional else 1
    model = Classifier(
        nn.Embedding(WORDS, 4),
        encoder,
        LastState(directions) if pooling is None else pooling,
        nn.Linear(6 * directions, classes),
    )
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.6)
    return model.double().eval()


def explained(model, lengths=(5, 3, 5)):
    torch.manual_seed(1)
    tokens = torch.randint(2, WORDS, (len(lengths), max(lengths)))
    inside = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return predict(model, tokens * inside, torch.tensor(lengths))


LSTM = {"input_size": 4, "hidden_size": 6, "batch_first": True}
COMPLETE = ("secant", "path", "operating", "shares", "gates", "account", "account, shares", "DeepLift",
            "integrated gradients, 300", "Shapley sampling, 3")  # fmt: skip


@pytest.mark.quick_diagonal(2)  # quick: every method, both poolings
@pytest.mark.parametrize("method", COMPLETE)
@pytest.mark.parametrize("pooling", [None, MeanPooling()], ids=["last", "mean"])
def test_words_and_rest_sum_to_the_margin(method, pooling):
    texts = explained(classifier(nn.LSTM(**LSTM), pooling))
    found = attribute(method, texts)
    gap = (found.values.sum(dim=1) + found.rest - texts.margins()).abs().max()
    assert gap < (1e-4 if "gradients" in method else 1e-5)
    assert (found.values[~texts.inside] == 0).all()


@pytest.mark.parametrize("method", ["zero", "gradient x input", "LRP"])
def test_what_is_not_complete_leaves_something_over(method):
    texts = explained(classifier(nn.LSTM(**LSTM)))
    found = attribute(method, texts)
    assert (found.values.sum(dim=1) + found.rest - texts.margins()).abs().max() > 1e-2


@pytest.mark.quick_diagonal(3)  # quick: every method, every encoder
@pytest.mark.parametrize(
    "encoder",
    [nn.GRU(**LSTM), nn.GRU(**LSTM, bidirectional=True, num_layers=2), nn.LSTM(**LSTM, num_layers=2)],
    ids=["GRU", "deep GRU both ways", "deep LSTM"],
)
@pytest.mark.parametrize("method", ["DeepLift", "account", "secant"])
def test_other_networks_are_complete_as_well(method, encoder):
    texts = explained(classifier(encoder))
    found = attribute(method, texts)
    assert torch.allclose(found.values.sum(dim=1) + found.rest, texts.margins(), atol=1e-7)


def lrp_linear(inputs, weight, output, relevance):
    """The ε rule of Arras et al. as its authors write it; what the bias and ε take is lost."""
    stabilised = output + EPSILON * torch.where(output >= 0, 1.0, -1.0)
    return (weight * inputs) @ (relevance / stabilised) if weight.dim() == 1 else (
        (weight * inputs[None, :]).T @ (relevance / stabilised)
    )  # fmt: skip


def reference_relevance(model, tokens, seed_of_head):
    """Propagate relevance through one LSTM layer step by step, with a relevance vector in place of a gradient."""
    encoder, d = model.encoder, 6
    w, u, b, b_h = (weight.detach() for weight in encoder.all_weights[0])
    xs = model.embedding(tokens).detach()
    h, c, steps = torch.zeros(d).double(), torch.zeros(d).double(), []
    for x in xs:
        z = w @ x + u @ h + b + b_h
        i, f, g, o = z[:d].sigmoid(), z[d : 2 * d].sigmoid(), z[2 * d : 3 * d].tanh(), z[3 * d :].sigmoid()
        new = f * c + i * g
        steps.append((x, h, c, z[2 * d : 3 * d], i, f, g, new))
        h, c = o * new.tanh(), new
    of_c, of_h, found = torch.zeros(d).double(), seed_of_head * h, []
    for x, before, c_before, z, i, f, g, c in reversed(steps):
        of_c = of_c + of_h
        stabilised = c + EPSILON * torch.where(c >= 0, 1.0, -1.0)
        of_g, of_old = i * g / stabilised * of_c, f * c_before / stabilised * of_c
        found.append(lrp_linear(x, w[2 * d : 3 * d], z, of_g).sum())
        of_h, of_c = lrp_linear(before, u[2 * d : 3 * d], z, of_g), of_old
    return torch.stack(found[::-1])


def test_relevance_propagation_is_that_of_the_paper():
    model = classifier(nn.LSTM(**LSTM))
    texts = explained(model, (5,))
    own = int(texts.classes[0])
    others = [k for k in range(3) if k != own]
    readout = model.head.weight.detach()[own] - model.head.weight.detach()[others].mean(dim=0)
    expected = reference_relevance(model, texts.tokens[0], readout)
    assert torch.allclose(attribute("LRP", texts).values[0], expected, rtol=1e-9, atol=1e-12)


def test_shapley_sampling_nears_the_shapley_value():
    texts = explained(classifier(nn.GRU(**LSTM)), (4,))

    def of(present):
        removed = torch.tensor([[place not in present for place in range(4)]])
        return float(texts.blanked(removed).margins())

    exact = torch.zeros(4, dtype=torch.float64)
    for order in permutations(range(4)):
        for place, word in enumerate(order):
            exact[word] += (of(order[: place + 1]) - of(order[:place])) / 24
    assert torch.allclose(
        attribute("Shapley sampling, 400", texts).values[0], exact, atol=0.1 * float(exact.abs().max())
    )


def test_kernel_shap_draws_two_more_subsets_for_each_word(monkeypatch):
    captum = pytest.importorskip("captum.attr", reason="needs the extra [compare]")
    drawn = []
    monkeypatch.setattr(
        captum.KernelShap, "attribute", lambda _, ones, n_samples, **__: drawn.append(n_samples) or ones
    )
    texts = explained(classifier(nn.GRU(**LSTM)), (5, 3))
    attribute("kernel SHAP, 2M + 2048", texts)
    attribute("kernel SHAP, 200", texts)
    assert drawn == [2058, 2054, 200, 200]


def test_occlusion_takes_words_away_or_blanks_them():
    texts = explained(classifier(nn.GRU(**LSTM)))
    rest = Explained(texts.model, texts.tokens[1:2, [0, 2]], torch.tensor([2]), texts.classes[1:2])
    gone = texts.tokens[1:2].clone()
    gone[0, 1] = 1
    blanked = Explained(texts.model, gone, texts.lengths[1:2], texts.classes[1:2])
    before = float(texts.margins()[1])
    assert float(attribute("occlusion", texts).values[1, 1]) == pytest.approx(before - float(rest.margins()))
    by_blank = attribute("occlusion by <unk>", texts).values[1, 1]
    assert float(by_blank) == pytest.approx(before - float(blanked.margins()))


@pytest.mark.parametrize(
    ("method", "encoder"),
    [
        ("LRP", nn.GRU(**LSTM)),
        ("DeepLift", nn.RNN(**LSTM)),
        ("contextual decomposition", nn.LSTM(**LSTM, num_layers=2)),
    ],
)
def test_a_method_that_a_network_does_not_have_says_so(method, encoder):
    with pytest.raises(UsageError, match="needs a"):
        attribute(method, explained(classifier(encoder)))


def test_the_margin_is_a_logit_less_the_mean_of_the_others():
    logits = torch.tensor([[3.0, 1.0, 2.0], [0.0, 4.0, 1.0]])
    assert margin(logits, torch.tensor([0, 2])).tolist() == [1.5, -1.0]


def test_deletion_prefers_the_words_that_the_model_reads():
    """A model that counts one word: attributions that name it are better than those that name another."""
    encoder = nn.RNN(1, 1, nonlinearity="relu", batch_first=True)
    model = Classifier(nn.Embedding(WORDS, 1), encoder, LastState(), nn.Linear(1, 2)).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(0.0)
        model.embedding.weight[5] = encoder.weight_ih_l0[:] = encoder.weight_hh_l0[:] = 1.0
        model.head.weight[:] = torch.tensor([[-4.0], [4.0]])
        model.head.bias[:] = torch.tensor([2.0, -2.0])
    tokens = torch.tensor([[2, 5, 3, 4, 2, 3, 2, 3], [2, 3, 4, 5, 0, 0, 0, 0]])
    texts = predict(model, tokens, torch.tensor([8, 4]))
    assert texts.classes.tolist() == [1, 1]
    right = delete(texts, (tokens == 5).double())
    wrong = delete(texts, (tokens == 3).double())
    assert (right.score > 0.9).all()
    assert (right.blank_score > 0.9).all()
    assert (wrong.score < 0).any()
    assert (right.insertion > wrong.insertion).all()
    assert torch.allclose(right.sufficiency, torch.zeros(2, dtype=torch.float64), atol=1e-9)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("integrated gradient, 30", "unknown method of attribution .*; did you mean 'integrated gradients'"),
        ("occlusion by unk", "did you mean 'occlusion by <unk>'"),
        ("shars", "did you mean 'shares'"),
        ("integrated gradients", "lacks its number of points or samples; write it behind the name: integrated grad"),
        ("LIME, many", "'LIME, many' lacks its number"),
    ],
)
def test_a_method_that_is_none_is_answered_with_the_nearest_name(method, message):
    with pytest.raises(UsageError, match=message):
        attributor(method)
    for name in ("kernel SHAP, 30", "LIME, 30", "occlusion by <unk>", "shares", "mean(operating, path)"):
        assert callable(attributor(name))  # the control
