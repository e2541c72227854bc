"""A loss as an output, by torch's own function: its account is that of the formula."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled

V, D = 12, 5
TEXTS = torch.tensor([[3, 7, 1, 4], [5, 2, 9, 0]])
LABELS = (torch.arange(2 * 3 * V).view(2, 3, V) % 3 == 0).double()
ORDER = 1.0 - 2.0 * (torch.arange(2 * 4 * D).view(2, 4, D) % 3 == 0).double()
WEIGHT = torch.linspace(0.5, 1.5, V, dtype=torch.float64)


class Predicts(nn.Module):
    """Logits of the next token at each position, and vectors that should be those of the text."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(V, D), nn.LSTM(D, D, batch_first=True), nn.Linear(D, V)
        self.double()

    def forward(self, tokens):
        vectors = self.embed(tokens)
        states = self.rnn(vectors)[0]
        return self.head(states)[:, :-1], states, vectors


def surprisal(logits, tokens, weight=None, ignored=None):
    """The formula, one number for each text."""
    picked = F.log_softmax(logits, -1).gather(2, tokens[:, 1:, None])[..., 0]
    scale = torch.ones(V, dtype=logits.dtype) if weight is None else weight
    return -(picked * scale[tokens[:, 1:]] * (tokens[:, 1:] != ignored)).sum(1)


def by_torch(tokens, **options):
    return lambda out: F.cross_entropy(out[0].transpose(1, 2), tokens[:, 1:], reduction="none", **options).sum(1)


def two_pieces(width, scale=1.0):
    """Squares up to a width, and the line that continues them beyond it; a multiple of the difference that is held."""
    with torch.no_grad():
        _, states, vectors = Predicts()(TEXTS)
    gap = states - vectors
    held = torch.where(gap.abs() <= width, gap / 2, width * (gap.sign() - width / (2 * gap)))
    return lambda out: scale * ((out[1] - out[2]) * held).sum((1, 2))


def two_classes(logits, positive=1.0):
    """The formula with its two logarithms, each a content of its own."""
    return -positive * LABELS * F.logsigmoid(logits) - (1 - LABELS) * (F.logsigmoid(logits) - logits)


def by_probabilities(shares):
    return -LABELS * shares.log() - (1 - LABELS) * (1 - shares).log()


def hinge_of_cosine(a, b):
    cosine = F.cosine_similarity(a, b)
    with torch.no_grad():  # torch adds a small number to each squared norm
        cosine_of_loss = (a * b).sum(1) / ((a.square().sum(1) + 1e-12) * (b.square().sum(1) + 1e-12)).sqrt()
        ratio = cosine_of_loss / cosine
    cosine = cosine * ratio
    return torch.where(ORDER[:, 0, 0] > 0, 1 - cosine, torch.relu(cosine))


def nearer(anchor, positive, negative):
    near = F.pairwise_distance(anchor, positive)
    far = torch.minimum(F.pairwise_distance(anchor, negative), F.pairwise_distance(positive, negative))
    return torch.relu(1 + near - far)


def margins(logits, classes):
    gaps = torch.relu(1 - logits.gather(1, classes[:, None]) + logits) ** 2
    return (WEIGHT[classes][:, None] * gaps.masked_fill(F.one_hot(classes, V).bool(), 0.0)).sum(1) / V


def stirling(count):
    return count * count.log() - count + 0.5 * torch.log(2 * torch.pi * count)


LOSSES = {
    "cross entropy": (by_torch(TEXTS), lambda out: surprisal(out[0], TEXTS)),
    "with weights": (by_torch(TEXTS, weight=WEIGHT), lambda out: surprisal(out[0], TEXTS, WEIGHT)),
    "padding is ignored": (by_torch(TEXTS, ignore_index=0), lambda out: surprisal(out[0], TEXTS, ignored=0)),
    "one text after another": (
        lambda out: F.cross_entropy(out[0].flatten(0, 1), TEXTS[:, 1:].flatten(), reduction="none").view(2, 3).sum(1),
        lambda out: surprisal(out[0], TEXTS),
    ),
    "of one position": (
        lambda out: torch.stack([F.cross_entropy(z, y) for z, y in zip(out[0][:, 0], TEXTS[:, 1], strict=True)]),
        lambda out: surprisal(out[0][:, :1], TEXTS[:, :2]),
    ),
    "negative log likelihood": (
        lambda out: F.nll_loss(out[0].log_softmax(-1).mT, TEXTS[:, 1:], reduction="none").sum(1),
        lambda out: surprisal(out[0], TEXTS),
    ),
    "the sum of the batch": (
        lambda out: nn.CrossEntropyLoss(reduction="sum")(out[0].mT, TEXTS[:, 1:]),
        lambda out: surprisal(out[0], TEXTS).sum(),
    ),
    "squares": (
        lambda out: F.mse_loss(out[1], out[2], reduction="none").mean((1, 2)),
        lambda out: ((out[1] - out[2]) ** 2).mean((1, 2)),
    ),
    "magnitudes": (
        lambda out: torch.stack([F.l1_loss(*each) for each in zip(out[1], out[2], strict=True)]),
        lambda out: (out[1] - out[2]).abs().mean((1, 2)),
    ),
    "squares of a batch": (lambda out: nn.MSELoss()(out[1], out[2]), lambda out: ((out[1] - out[2]) ** 2).mean()),
    "squares near zero, magnitudes beyond": (
        lambda out: F.smooth_l1_loss(out[1], out[2], reduction="none", beta=0.4).sum((1, 2)),
        two_pieces(0.4, scale=1 / 0.4),
    ),
    "the same in other units": (
        lambda out: F.huber_loss(out[1], out[2], reduction="none", delta=0.4).sum((1, 2)),
        two_pieces(0.4),
    ),
    "of two classes": (
        lambda out: F.binary_cross_entropy_with_logits(out[0], LABELS, reduction="none").sum((1, 2)),
        lambda out: two_classes(out[0]).sum((1, 2)),
    ),
    "of two classes, with weights": (
        lambda out: nn.BCEWithLogitsLoss(weight=WEIGHT, pos_weight=2 * WEIGHT, reduction="sum")(out[0], LABELS),
        lambda out: (WEIGHT * two_classes(out[0], 2 * WEIGHT)).sum(),
    ),
    "of two classes, by probabilities": (
        lambda out: F.binary_cross_entropy(out[0].sigmoid(), LABELS, weight=WEIGHT, reduction="none").sum((1, 2)),
        lambda out: (WEIGHT * by_probabilities(out[0].sigmoid())).sum((1, 2)),
    ),
    "divergence from probabilities": (
        lambda out: F.kl_div(out[0].log_softmax(-1), WEIGHT.softmax(0).expand(2, 3, V), reduction="none").sum((1, 2)),
        lambda out: (WEIGHT.softmax(0) * (WEIGHT.log_softmax(0) - out[0].log_softmax(-1))).sum((1, 2)),
    ),
    "divergence from logarithms": (
        lambda out: F.kl_div(
            out[0].log_softmax(-1), WEIGHT.log_softmax(0).expand(2, 3, V), reduction="batchmean", log_target=True
        ),
        lambda out: (WEIGHT.softmax(0) * (WEIGHT.log_softmax(0) - out[0].log_softmax(-1))).sum() / 2,
    ),
    "order of two": (
        lambda out: F.margin_ranking_loss(out[1], out[2], ORDER, margin=0.2, reduction="none").sum((1, 2)),
        lambda out: torch.relu(0.2 - ORDER * (out[1] - out[2])).sum((1, 2)),
    ),
    "near or far": (
        lambda out: F.hinge_embedding_loss(out[1], ORDER, reduction="none").sum((1, 2)),
        lambda out: torch.where(ORDER > 0, out[1], torch.relu(1 - out[1])).sum((1, 2)),
    ),
    "the same direction or not": (
        lambda out: F.cosine_embedding_loss(out[1].mean(1), out[2].mean(1), ORDER[:, 0, 0], reduction="none"),
        lambda out: hinge_of_cosine(out[1].mean(1), out[2].mean(1)),
    ),
    "nearer than another": (
        lambda out: F.triplet_margin_loss(out[1][:, 0], out[2][:, 0], out[2][:, 2], swap=True, reduction="none"),
        lambda out: nearer(out[1][:, 0], out[2][:, 0], out[2][:, 2]),
    ),
    "a margin of each class": (
        lambda out: F.multi_margin_loss(out[0][:, 0], TEXTS[:, 1], p=2, weight=WEIGHT, reduction="none"),
        lambda out: margins(out[0][:, 0], TEXTS[:, 1]),
    ),
    "a soft margin": (
        lambda out: F.soft_margin_loss(out[1], ORDER, reduction="none").sum((1, 2)),
        lambda out: F.softplus(-ORDER * out[1]).sum((1, 2)),
    ),
    "counts": (
        lambda out: F.poisson_nll_loss(out[1], 3 + ORDER, full=True, reduction="none").sum((1, 2)),
        lambda out: (out[1].exp() - (3 + ORDER) * out[1] + stirling(3 + ORDER)).sum((1, 2)),
    ),
    "counts, by their mean": (
        lambda out: F.poisson_nll_loss(out[1].abs(), 3 + ORDER, log_input=False, reduction="sum"),
        lambda out: (out[1].abs() - (3 + ORDER) * (out[1].abs() + 1e-8).log()).sum(),
    ),
    "from a constant": (
        lambda out: F.mse_loss(WEIGHT[:D].expand(2, D), out[1][:, -1], reduction="none").sum(1),
        lambda out: ((out[1][:, -1] - WEIGHT[:D]) ** 2).sum(1),
    ),
}


@pytest.mark.quick_diagonal(2)  # quick: every loss, both expansions
@pytest.mark.parametrize("expansion", ["secant", "shares"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_has_the_account_of_its_formula(name, expansion):
    found, expected = (
        unrolled.account(Predicts(), TEXTS, target=target, expansion=expansion) for target in LOSSES[name]
    )
    assert found.closes
    assert float(found.remainder.abs().max()) < 1e-12
    torch.testing.assert_close(found.output, expected.output, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.tokens, expected.tokens, rtol=0, atol=1e-12)
    assert float(found.tokens.abs().max()) > 1e-3


def test_the_surprisal_of_another_text_has_another_account():
    found, other = (unrolled.account(Predicts(), TEXTS, target=by_torch(each)) for each in (TEXTS, TEXTS.flip(1)))
    assert float((found.tokens - other.tokens).abs().max()) > 0.01


def test_explain_shows_the_n_grams_of_a_surprisal():
    one = TEXTS[:1]
    found, expected = (
        unrolled.explain(Predicts(), one, target=target)
        for target in (by_torch(one), lambda out: surprisal(out[0], one))
    )
    torch.testing.assert_close(found.token_scores, expected.token_scores, rtol=0, atol=1e-12)
    assert abs(found.ledger.remainder) < 1e-12


def by_shares(logits, shares, weight=None):
    """The formula for shares of classes that stand last."""
    return -(shares * F.log_softmax(logits, -1) * (1.0 if weight is None else weight)).sum(-1)


def smoothed(tokens, smoothing, ignored=-100):
    shares = F.one_hot(tokens[:, 1:], V).double() * (1 - smoothing) + smoothing / V
    return shares * (tokens[:, 1:, None] != ignored)


SHARES = torch.linspace(0.0, 2.0, V, dtype=torch.float64).expand(2, 3, V).softmax(-1)
SMOOTH = {
    "smoothed": ({"label_smoothing": 0.2}, smoothed(TEXTS, 0.2)),
    "with weights": ({"label_smoothing": 0.2, "weight": WEIGHT}, smoothed(TEXTS, 0.2)),
    "without padding": ({"label_smoothing": 0.2, "ignore_index": 0}, smoothed(TEXTS, 0.2, ignored=0)),
    "shares": ({}, SHARES),
    "shares with weights": ({"weight": WEIGHT}, SHARES),
    "smoothed shares": ({"label_smoothing": 0.2, "weight": WEIGHT}, 0.8 * SHARES + 0.2 / V),
}


@pytest.mark.quick_diagonal(3)  # quick: every loss, every reduction
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("name", SMOOTH)
def test_shares_of_classes_weigh_the_logarithms(name, reduction):
    options, shares = SMOOTH[name]
    classes = SHARES.mT if "shares" in name else TEXTS[:, 1:]

    def by_function(out):
        loss = F.cross_entropy(out[0].mT, classes, reduction=reduction, **options)
        return loss.sum(1) if reduction == "none" else loss.reshape(1)

    def by_formula(out):
        loss = by_shares(out[0], shares, options.get("weight"))
        if reduction == "none":
            return loss.sum(1)
        if reduction == "sum" or "shares" in name:
            return (loss.sum() / (loss.numel() if reduction == "mean" else 1)).reshape(1)
        read = (TEXTS[:, 1:] != options.get("ignore_index", -100)).double()
        return (loss.sum() / (options.get("weight", torch.ones_like(WEIGHT))[TEXTS[:, 1:]] * read).sum()).reshape(1)

    found, expected, other = (
        unrolled.account(Predicts(), TEXTS, target=target)
        for target in (by_function, by_formula, lambda out: by_shares(out[0], smoothed(TEXTS, 0.0)).sum(1))
    )
    torch.testing.assert_close(found.output, expected.output, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.tokens, expected.tokens, rtol=0, atol=1e-12)
    assert found.closes
    assert float((found.tokens - other.tokens).abs().max()) > 1e-3  # of the plain surprisal


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_what_is_ignored_may_have_any_number_and_any_logits(weight, reduction):
    classes = TEXTS[:, 1:].clone()
    classes[1, 1] = 255  # of no class

    def smooth(read):
        def loss(out):
            logits = out[0].masked_fill((torch.arange(V) == 2) & (classes == 255)[..., None], -torch.inf)
            options = {"weight": weight, "ignore_index": 255, "label_smoothing": 0.2, "reduction": reduction}
            return F.cross_entropy(logits[read], classes[read], **options).reshape(1)

        return loss

    everywhere = torch.ones_like(classes, dtype=torch.bool)
    found, expected = (
        unrolled.account(Predicts(), TEXTS, target=smooth(read)) for read in (everywhere, classes != 255)
    )
    torch.testing.assert_close(found.output, expected.output, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.tokens, expected.tokens, rtol=0, atol=1e-12)
    classes[1, 1] = TEXTS[1, 2]
    other = unrolled.account(Predicts(), TEXTS, target=smooth(everywhere))  # the control: it is read
    assert not torch.allclose(other.tokens, expected.tokens)


def test_a_loss_over_all_alignments_is_refused_by_what_to_do():
    def aligned(out):
        return F.ctc_loss(out[0].log_softmax(-1).transpose(0, 1), TEXTS[:, :2] + 1, [3, 3], [2, 2], reduction="none")

    with pytest.raises(unrolled.UnsupportedOperationError, match=r"ctc_loss has no rule.*account for what it reads"):
        unrolled.account(Predicts(), TEXTS, target=aligned)
