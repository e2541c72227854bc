"""Bidirectional networks of several layers beside other networks: their n-grams go down to the tokens, as alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import unrolled
from outside_judge import Model, ids, judge_account, judge_explanation, numbers, one_of

V = 30
LENGTHS = torch.tensor([3, 5])


class Translator(nn.Module):
    """An encoder of several layers in both directions, and a decoder with attention that starts from its states."""

    def __init__(self, kind=nn.LSTM, layers=2, bias=True):
        super().__init__()
        self.src, self.tgt = nn.Embedding(V, 4), nn.Embedding(V, 4)
        self.enc = kind(4, 3, layers, bidirectional=True, batch_first=True, bias=bias)
        self.dec = kind(4, 6, layers, batch_first=True, bias=bias)
        self.out = nn.Linear(12, V, bias=bias)

    def forward(self, src, tgt):
        memory, state = self.enc(self.src(src))

        def joined(h):
            return torch.cat([h[0::2], h[1::2]], -1)

        state = tuple(joined(h) for h in state) if isinstance(state, tuple) else joined(state)
        o, _ = self.dec(self.tgt(tgt), state)
        a = (o @ memory.transpose(1, 2)).softmax(-1)
        return self.out(torch.cat([o, a @ memory], -1))


class TwoEncoders(nn.Module):
    """A network over another one, both of several layers in both directions, with a norm between them."""

    def __init__(self):
        super().__init__()
        self.emb, self.norm = nn.Embedding(V, 4), nn.LayerNorm(6)
        self.low = nn.GRU(4, 3, 2, bidirectional=True, batch_first=True)
        self.high = nn.LSTM(6, 3, 2, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(6, 2)

    def forward(self, x):
        return self.fc(self.high(torch.tanh(self.norm(self.low(self.emb(x))[0])))[0])


class CharWord(nn.Module):
    """The characters of each word, packed, and the words: both of two layers in both directions."""

    def __init__(self):
        super().__init__()
        self.c, self.w = nn.Embedding(V, 3), nn.Embedding(V, 3)
        self.chars = nn.LSTM(3, 2, 2, bidirectional=True, batch_first=True)
        self.words = nn.LSTM(7, 3, 2, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(6, 4)

    def forward(self, words, chars, lengths):
        packed = pack_padded_sequence(self.c(chars), lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.chars(packed)
        x = torch.cat([self.w(words), torch.cat([h[2], h[3]], -1)[None]], -1)
        return self.fc(self.words(x)[0])


class Siamese(nn.Module):
    """One network for two series, one of them packed."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4, 2, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(8, 1)

    def forward(self, one, other):
        packed = pack_padded_sequence(other, LENGTHS[: len(other)], batch_first=True, enforce_sorted=False)
        u, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.fc(torch.relu(self.rnn(one)[0].mean(1)) * u.amax(1))


SOURCE, PREFIX = ids(2, 5), ids(2, 4)
WORDS, CHARS = ids(1, 3), torch.tensor([[4, 8, 2, 7], [5, 9, 0, 0], [3, 6, 1, 0]])
ONE, OTHER = numbers(2, 4, 3), numbers(2, 5, 3)
MODELS = {
    f"{kind.__name__} {layers}": Model(
        lambda kind=kind, layers=layers: Translator(kind, layers),
        (SOURCE, PREFIX),
        lambda out: out[:, -1, 7],
        (0, 1),
        alone=one_of(SOURCE, PREFIX),
    )
    for kind, layers in ((nn.LSTM, 2), (nn.GRU, 3), (nn.RNN, 2))
}
MODELS |= {
    "one over the other": Model(TwoEncoders, (SOURCE,), lambda out: out[:, 1, 1], (0,), alone=one_of(SOURCE)),
    "characters and words": Model(CharWord, (WORDS, CHARS, torch.tensor([4, 2, 3])), lambda out: out[:, 1, 2]),
    "siamese": Model(Siamese, (ONE[1:], OTHER[:1]), 0),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_account_is_right(name):
    judge_account(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_the_explanation_is_right(name):
    case = MODELS[name]
    for found in judge_explanation(case):
        assert not any("layer" in note for note in found.notes)


@pytest.mark.quick_diagonal(3)  # quick: every network, every expansion
@pytest.mark.parametrize("expansion", ["secant", "operating", "shares", "mean(secant,operating)"])
@pytest.mark.parametrize(("kind", "layers"), [(nn.LSTM, 2), (nn.GRU, 3), (nn.RNN, 2)])
def test_without_biases_the_n_grams_of_a_token_sum_to_its_account(kind, layers, expansion):
    torch.manual_seed(1)
    model, args = Translator(kind, layers, bias=False).double(), (SOURCE[:1], PREFIX[:1])
    options = {"target": lambda out: out[:, -1, 7], "expansion": expansion}
    found, account = unrolled.explain(model, *args, **options), unrolled.account(model, *args, **options)
    for each, name in zip(found.sequences, ("0", "1"), strict=True):
        torch.testing.assert_close(each.token_scores, account.texts[name][0], atol=1e-12, rtol=1e-9)


@pytest.mark.quick_diagonal(2)  # quick: every expansion, two layers and three
@pytest.mark.parametrize("expansion", ["secant", "path", "operating"])
@pytest.mark.parametrize("layers", [2, 3])
def test_a_network_alone_has_the_same_n_grams_as_among_several_calls(layers, expansion):
    class Alone(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.rnn = nn.Embedding(V, 4), nn.LSTM(4, 3, layers, bidirectional=True, batch_first=True)
            self.fc = nn.Linear(6, 2)

        def forward(self, x):
            return self.fc(self.rnn(self.emb(x))[0].mean(1))

    torch.manual_seed(1)
    model, text = Alone().double(), ids(1, 9)
    for order in (None, 3):
        alone = unrolled.explain(model, text, target=1, expansion=expansion, max_order=order)
        among = unrolled.explain(model, text, target=1, expansion=expansion, max_order=order, call=0)
        assert alone.max_order == among.max_order
        torch.testing.assert_close(alone.triangle.contribution_band, among.triangle.contribution_band)
        torch.testing.assert_close(alone.triangle.score_band, among.triangle.score_band)
        torch.testing.assert_close(alone.token_scores, among.token_scores)


def test_all_spans_together_are_the_contribution_of_the_sequence():
    case = MODELS["LSTM 2"]
    args = case.alone(0)
    whole = unrolled.explain(case.built(), *args, target=case.target, max_order=9)
    short = unrolled.explain(case.built(), *args, target=case.target, max_order=2)
    source = whole.sequences[0]
    assert float(source.triangle.contributions.sum()) == pytest.approx(source.ledger.ngrams, abs=1e-12)
    assert short.sequences[0].ledger.ngrams == pytest.approx(source.ledger.ngrams, abs=1e-12)
    assert abs(float(short.sequences[0].triangle.contributions.sum()) - source.ledger.ngrams) > 1e-9  # longer ones


def test_what_each_number_contributes_sums_to_its_step():
    case = MODELS["siamese"]
    found = unrolled.explain(case.built(), *case.args, target=0)
    for each in found.sequences:
        total = each.feature_scores.sum(dim=1) + each.features.rest
        torch.testing.assert_close(total, each.token_scores, atol=1e-12, rtol=1e-9)
