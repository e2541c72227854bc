"""An output that reads a model by a softmax, an exponential or a quotient only is followed through it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

V, E = 9, 4
IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])


class Ends(nn.Module):
    """A bag of words, a linear layer and one last operation."""

    def __init__(self, last, bias=True):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head, self.last = nn.Embedding(V, E), nn.Linear(E, 3, bias=bias), last
        self.double()

    def logits(self, ids):
        return self.head(self.embed(ids).sum(1))

    def forward(self, ids):
        return self.last(self.logits(ids))


ENDS = {
    "softmax": lambda z: z.softmax(1),
    "masked softmax": lambda z: torch.stack((z[:, 0], z[:, 1], z[:, 2] * 0 - torch.inf), 1).softmax(1),
    "log of softmax": lambda z: z.softmax(1).log(),
    "exp": torch.exp,
    "distance": lambda z: torch.exp(-z.abs().sum(1, keepdim=True)).expand(-1, 3),
    "similarity": lambda z: 1 / (1 + z.abs()),
    "quotient": lambda z: 2.0 / (3.0 + z.square()),
    "power": lambda z: (1 + z.square()) ** -0.5,
    "logsumexp": lambda z: torch.stack([z.logsumexp(1)] * 3, 1),
    "logaddexp": lambda z: torch.logaddexp(z, z.flip(1)),
    "logaddexp of a number": lambda z: torch.logaddexp(z, torch.tensor(0.3)),
    "logcumsumexp": lambda z: torch.logcumsumexp(z, 1),
    "survival": lambda z: (1 - z.sigmoid()).cumprod(1),
    "soft arg max": lambda z: (z.softmax(1) * torch.arange(3.0, dtype=z.dtype)).sum(1, keepdim=True).expand(-1, 3),
}


@pytest.mark.parametrize("name", ENDS)
def test_contributions_sum_to_the_output(name):
    model = Ends(ENDS[name])
    found = unrolled.account(model, IDS, target=1)
    assert found.output.tolist() == pytest.approx(model(IDS)[:, 1].tolist(), abs=1e-14)
    assert found.closes
    assert float(found.remainder.abs().max()) < 1e-13
    assert any("not a logit" in note for note in found.notes)
    assert bool((found.texts["0"] != 0).all())


def test_a_softmax_at_the_end_has_the_integrated_gradients_of_its_logits():
    model = Ends(ENDS["softmax"], bias=False)
    z = model.logits(IDS).detach()
    nodes = (torch.arange(20_000, dtype=z.dtype) + 0.5) / 20_000
    p = torch.softmax(nodes[:, None, None] * z, -1)
    slopes = (p[..., 1:2] * (torch.eye(3, dtype=z.dtype)[1] - p)).mean(0)  # of output 1 by each logit
    words = model.embed(IDS) @ model.head.weight.T  # what each word adds to each logit
    expected = (words * slopes[:, None]).sum(-1)
    torch.testing.assert_close(unrolled.account(model, IDS, target=1).texts["0"], expected.detach(), atol=1e-9, rtol=0)


def sums_of_the_first(z):
    return torch.stack([z[:, : count + 1].logsumexp(1) for count in range(3)], 1)


SUMS = {
    "logaddexp": (lambda z: torch.logaddexp(z, z.flip(1)), lambda z: torch.stack([z, z.flip(1)]).logsumexp(0)),
    "logcumsumexp": (lambda z: z.logcumsumexp(1), sums_of_the_first),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_of_exponentials_has_the_account_of_logsumexp(name):
    found, expected = (unrolled.account(Ends(last), IDS, target=1) for last in SUMS[name])
    torch.testing.assert_close(found.texts, expected.texts, rtol=1e-12, atol=1e-14)
    assert not torch.allclose(found.texts["0"], unrolled.account(Ends(SUMS[name][0]), IDS, target=0).texts["0"])


def test_softmax_in_the_middle_stays_a_multiplier():
    class Attends(Ends):
        def forward(self, ids):
            vectors = self.embed(ids)
            weights = self.head(vectors)[..., :1].softmax(1)
            return self.head((weights * vectors).sum(1))

    class Probable(Attends):
        def forward(self, ids):
            return super().forward(ids).softmax(1)

    logit = unrolled.account(Attends(None), IDS, target=1)
    weights = (Attends(None).embed(IDS) @ Attends(None).head.weight[0] + Attends(None).head.bias[0]).softmax(1)
    vectors = Attends(None).embed(IDS) @ Attends(None).head.weight[1]
    torch.testing.assert_close(logit.texts["0"], (weights * vectors).detach())
    assert not any("not a logit" in note for note in logit.notes)
    probability = unrolled.account(Probable(None), IDS, target=1)
    assert float(probability.remainder.abs().max()) < 1e-14
    assert any("result of softmax" in note for note in probability.notes)


def test_of_two_softmaxes_the_one_at_the_end_alone_is_followed():
    class Attends(Ends):
        """Attention reads the second number of a vector, the head reads the first."""

        def forward(self, ids):
            vectors = self.embed(ids)
            return self.head((vectors[..., 1:2].softmax(1) * vectors).sum(1)).softmax(1)

    model = Attends(None)
    with torch.no_grad():
        model.head.weight[:, 1:] = 0
        model.embed.weight[2] = torch.tensor([0.0, 1.0, 0.0, 0.0])  # what attention reads alone
    found = unrolled.account(model, IDS, target=1)
    assert found.closes
    assert float(found.texts["0"][0, 1]) == 0
    with torch.no_grad():
        assert float((model(IDS) - model(torch.tensor([[1, 8, 3], [4, 5, 6]])))[0, 1].abs()) > 1e-3


def test_large_logits_take_more_points():
    model = Ends(ENDS["softmax"])
    with torch.no_grad():
        model.head.weight.mul_(100)
    assert float(unrolled.account(model, IDS, target=1).remainder.abs().max()) < 1e-11


def test_what_cannot_be_followed_is_refused_with_the_names_of_what_is_held():
    with pytest.raises(unrolled.UsageError, match=r"nothing to account for.*\(held last: softmax\)"):
        unrolled.account(Ends(lambda z: torch.eye(3, dtype=z.dtype)[z.softmax(1).argmax(1)]), IDS, target=1)


def test_a_sigmoid_at_the_end_is_named():
    (note,) = unrolled.account(Ends(torch.sigmoid), IDS, target=1).notes
    assert note.startswith("the target is the result of a sigmoid, not a logit")
    inside = unrolled.account(Ends(lambda z: z * torch.sigmoid(z)), IDS, target=1)
    assert not any("sigmoid" in note for note in inside.notes)


def test_a_masked_candidate_leaves_the_log_probability_of_the_others_finite():
    def masked(z):
        return z.masked_fill(torch.tensor([False, False, True]), -torch.inf).log_softmax(1)

    found = unrolled.account(Ends(masked), IDS, target=1)
    assert found.closes
    assert float(found.remainder.abs().max()) < 1e-14


def test_what_a_model_adds_to_a_text_belongs_to_its_table():
    class Begins(Ends):
        def forward(self, ids):
            first = torch.full_like(ids[:, :1], 7)
            return self.logits(torch.cat((first, ids), 1))

    model = Begins(None)
    found = unrolled.account(model, IDS, target=1)
    assert found.closes
    torch.testing.assert_close(found.texts["0"], (model.embed(IDS) @ model.head.weight[1]).detach())
    own = float((model.embed.weight[7] @ model.head.weight[1]).detach())
    assert found.biases["embed.weight"].tolist() == pytest.approx([own, own])


def test_a_draw_is_held_and_its_mean_and_deviation_are_followed():
    class Draws(Ends):
        def forward(self, ids):
            z = self.logits(ids)
            return torch.normal(z, 1 + z.abs())

    found = unrolled.account(Draws(None), IDS, target=1, seed=3)
    assert float(found.remainder.abs().max()) < 1e-14
    with pytest.raises(unrolled.UsageError, match="normal draws random numbers"):
        unrolled.account(Draws(None), IDS, target=1)


@pytest.mark.parametrize("how", ["amax", "amin", "mean", "sum"])
def test_what_is_reduced_by_group_is_linear_in_its_entries(how):
    groups = torch.tensor([[0, 1, 0], [1, 1, 0]])

    def reduced(z):
        return (
            torch.full((len(z), 3), -9.0).to(z).scatter_reduce(1, groups[: len(z)], z, how, include_self=how == "sum")
        )

    model = Ends(reduced)
    found = unrolled.account(model, IDS, target=1)
    assert found.output.tolist() == pytest.approx(model(IDS)[:, 1].tolist())
    assert float(found.remainder.abs().max()) < 1e-14
    with pytest.raises(unrolled.UsageError, match=r"scatter_reduce with 'prod'"):
        unrolled.account(Ends(lambda z: z.scatter_reduce(1, groups, z, "prod")), IDS, target=1)


def test_an_operation_without_a_rule_stops_only_an_output_that_is_made_of_it():
    class Trains(Ends):
        def forward(self, ids):
            z = self.logits(ids)
            strange = torch.special.bessel_j0(z)
            return {"logits": z, "loss": nn.functional.multilabel_margin_loss(z, z.long()), "both": z * strange.sum()}

    model = Trains(None)
    found = unrolled.account(model, IDS, target=lambda out: out["logits"][:, 1])
    torch.testing.assert_close(found.texts["0"], (model.embed(IDS) @ model.head.weight[1]).detach())
    for pick, name in [
        (lambda out: out["loss"], "multilabel_margin_loss"),
        (lambda out: out["both"][:, 1], "bessel_j0"),
    ]:
        with pytest.raises(unrolled.UsageError, match=rf"operation \S*{name}\S* has no rule"):
            unrolled.account(model, IDS, target=pick)


def picked(model, ids):
    return model.embed.weight[ids]


def one_hot(model, ids):
    return nn.functional.one_hot(ids, V).to(model.embed.weight.dtype) @ model.embed.weight


def padded(model, ids):
    return model.embed(nn.utils.rnn.pad_sequence([ids[0, :2], ids[1]], batch_first=True))


def packed(model, ids):
    return nn.utils.rnn.pad_sequence([model.embed(ids[0, :2]), model.embed(ids[1])], batch_first=True, padding_value=2)


@pytest.mark.parametrize("look_up", [picked, one_hot, padded, packed])
def test_tokens_are_followed_to_their_vectors_however_they_are_looked_up(look_up):
    class Looks(Ends):
        def forward(self, ids):
            return self.head(look_up(self, ids).sum(1))

    model = Looks(None)
    found = unrolled.account(model, IDS, target=1)
    expected = (model.embed(IDS) @ model.head.weight[1]).detach()
    if look_up in (padded, packed):
        expected[0, 2] = 0
    torch.testing.assert_close(found.texts["0"], expected)
    assert float(found.remainder.abs().max()) < 1e-14
