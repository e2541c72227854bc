"""The language model: it does not read ahead, it carries its state, and `explain` accounts for its scores."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.cells import recurrent
from unrolled.composition.base import BidirectionalEncoder
from unrolled.composition.matrix_vector import MVMAGEncoder
from unrolled.composition.transformer import TransformerEncoder
from unrolled.errors import ShapeError, UsageError
from unrolled.lab.models.language_model import LanguageModel
from unrolled.lab.models.softmax import AdaptiveSoftmax, FullSoftmax, TiedSoftmax

WORDS, SIZE = 20, 8
ENCODERS = {
    "lstm": lambda: nn.LSTM(SIZE, SIZE, num_layers=2, batch_first=True),
    "gru": lambda: nn.GRU(SIZE, SIZE, batch_first=True),
    "rnn": lambda: nn.RNN(SIZE, SIZE, batch_first=True),
    "mmlstm": lambda: recurrent("mmlstm", SIZE, SIZE, num_layers=2, batch_first=True),
    "mvma_l": lambda: recurrent("mvma_l", SIZE, SIZE, batch_first=True),
}
HEADS = {
    "full": lambda: FullSoftmax(SIZE, WORDS),
    "tied": lambda: TiedSoftmax(SIZE, WORDS, SIZE),
    "adaptive": lambda: AdaptiveSoftmax(SIZE, WORDS),
}


def made(encoder="lstm", head="tied", dropout=0.0):
    torch.manual_seed(2)
    model = LanguageModel(nn.Embedding(WORDS, SIZE), ENCODERS[encoder](), HEADS[head](), dropout).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.4)
    return model


def tokens(batch=3, time=12):
    return torch.randint(1, WORDS, (batch, time), generator=torch.Generator().manual_seed(5))


@pytest.fixture(autouse=True)
def _small_clusters(monkeypatch):
    monkeypatch.setattr("unrolled.lab.models.softmax._CUTOFFS", (6,))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_windows_with_the_state_carried_are_one_long_run(encoder, head):
    model, text = made(encoder, head), tokens()
    read, targets = text[:, :-1], text[:, 1:]
    whole, last = model.loss(read, targets)
    total, state = 0.0, ()
    for begin, end in ((0, 1), (1, 5), (5, 11)):
        part, state = model.loss(read[:, begin:end], targets[:, begin:end], state)
        total += part
    torch.testing.assert_close(total, whole, rtol=0, atol=1e-10)
    for ours, theirs in zip(state, last, strict=True):
        torch.testing.assert_close(ours, theirs)
        assert not ours.requires_grad
    anew = sum(model.loss(read[:, b:e], targets[:, b:e])[0] for b, e in ((0, 5), (5, 11)))
    assert abs(anew - whole) > 1e-3


@pytest.mark.parametrize("head", HEADS)
def test_the_loss_is_that_of_the_scores(head):
    model, text = made(head=head), tokens()
    scores = model(text[:, :-1])
    expected = nn.functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten(), reduction="sum")
    torch.testing.assert_close(model.loss(text[:, :-1], text[:, 1:])[0], expected)


def test_the_next_token_is_scored_as_at_the_last_position():
    model, text = made(), tokens()
    scores, state = model.next(text[:, :7])
    torch.testing.assert_close(scores, model(text)[:, 6])
    scores, _ = model.next(text[:, 7:], state)
    torch.testing.assert_close(scores, model(text)[:, -1])


def test_a_padded_sequence_says_what_it_says_alone():
    model, text, lengths = made(), tokens(), torch.tensor([12, 3, 7])
    together = model(text, lengths)
    for row, n, found in zip(text, lengths.tolist(), together, strict=True):
        torch.testing.assert_close(found[:n], model(row[None, :n])[0])


def test_encoders_without_a_state_begin_anew_in_every_window():
    model = LanguageModel(nn.Embedding(WORDS, 4), MVMAGEncoder(4, 4), FullSoftmax(4, WORDS)).eval()
    assert not model.has_state
    features, state = model.read(tokens())
    assert state == ()
    torch.testing.assert_close(model.read(tokens()[:, 6:])[0], model.read(tokens()[:, 6:], state)[0])
    assert not torch.allclose(model.read(tokens()[:, 6:])[0], features[:, 6:])


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (lambda: nn.GRU(4, 4, bidirectional=True, batch_first=True), r"GRU\) sees the token that it must predict"),
        (lambda: recurrent("gru", 4, 4, bidirectional=True, batch_first=True), "Recurrent.* sees the token"),
        (lambda: BidirectionalEncoder(MVMAGEncoder(4, 4), MVMAGEncoder(4, 4)), "BidirectionalEncoder.* sees the token"),
        (lambda: TransformerEncoder(4, 4), "Transformer.* expected .* causal=true"),
        (lambda: nn.GRU(4, 4), "batch_first=False; expected True"),
    ],
)
def test_encoders_that_see_the_future_are_refused(encoder, message):
    with pytest.raises(UsageError, match=message):
        LanguageModel(nn.Embedding(WORDS, 4), encoder(), FullSoftmax(4, WORDS))


def test_a_causal_transformer_is_taken():
    model = LanguageModel(nn.Embedding(WORDS, 4), TransformerEncoder(4, 4, causal=True), FullSoftmax(4, WORDS)).eval()
    other = tokens().clone()
    other[:, 6:] = 1
    torch.testing.assert_close(model(tokens())[:, :6], model(other)[:, :6])
    assert not torch.allclose(model(tokens())[:, 6:], model(other)[:, 6:])


def test_dropout_acts_in_training_only():
    model = made(dropout=0.5)
    assert torch.equal(model(tokens()), model(tokens()))
    model.train()
    assert not torch.equal(model(tokens()), model(tokens()))


@pytest.mark.parametrize("text", [torch.zeros(3, dtype=torch.int64), torch.zeros(2, 0, dtype=torch.int64)])
def test_tokens_of_another_shape_are_refused(text):
    for call in (made(), made().next):
        with pytest.raises(ShapeError, match=r"expected \(batch, time\)"):
            call(text)


@pytest.mark.quick_diagonal(3)  # quick: every encoder, every head
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("encoder", ["lstm", "gru", "mmlstm"])
def test_the_score_of_a_next_word_is_accounted_for(encoder, head):
    model, text, word = made(encoder, head), tokens(1, 7), 11

    def next_word(scores):
        return scores[:, -1, word]

    found = unrolled.explain(model, text, target=next_word)
    ledger = found.ledger
    assert ledger.logit == pytest.approx(model(text)[0, -1, word].item(), abs=1e-12)
    assert abs(ledger.remainder) < 1e-7
    assert float(found.triangle.contributions.sum()) + ledger.initial + ledger.bias == pytest.approx(
        ledger.logit, abs=1e-7
    )
    assert abs(ledger.ngrams) > 1e-3
    inexact = unrolled.explain(model, text, target=next_word, expansion="zero")
    assert abs(inexact.ledger.remainder) > 1e-5


def test_the_bias_of_a_linear_head_is_the_words_own():
    model = made("gru", "tied")
    found = unrolled.explain(model, tokens(1, 5), target=lambda scores: scores[:, -1, 3])
    assert found.ledger.bias == pytest.approx(model.head.bias[3].item())
