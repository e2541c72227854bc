"""Encoders and decoders: attention, input feeding, teacher forcing, numbers that are fed back."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import softmax

import unrolled
from unrolled.errors import UsageError

V, E, D = 12, 4, 5
SOURCE, TARGET = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]]), torch.tensor([[1, 7, 2, 8], [1, 8, 2, 9]])


class Translator(nn.Module):
    """A bidirectional encoder, additive attention, and a decoder of cells, with or without input feeding."""

    def __init__(self, cell=nn.GRUCell, feeds=False, bias=True):
        super().__init__()
        self.words, self.letters = nn.Embedding(V, E), nn.Embedding(V, E)
        self.encoder = nn.GRU(E, D, bidirectional=True, batch_first=True, bias=bias)
        self.bridge, self.query = nn.Linear(2 * D, D, bias=bias), nn.Linear(D, 2 * D, bias=bias)
        self.decoder = cell(E + 2 * D + D * feeds, D, bias=bias)
        self.join, self.head = nn.Linear(3 * D, D, bias=bias), nn.Linear(D, V, bias=bias)
        self.feeds = feeds
        self.double().eval()

    def forward(self, source, target):
        states, last = self.encoder(self.words(source))
        h = torch.tanh(self.bridge(torch.cat((last[0], last[1]), -1)))
        c = torch.zeros_like(h)
        fed = torch.zeros_like(h)
        outs = []
        for t in range(target.shape[1]):
            weights = softmax(torch.einsum("bd,btd->bt", self.query(h), states), -1)
            context = torch.einsum("bt,btd->bd", weights, states)
            x = torch.cat([self.letters(target[:, t]), context, *([fed] if self.feeds else [])], -1)
            if isinstance(self.decoder, nn.LSTMCell):
                h, c = self.decoder(x, (h, c))
            else:
                h = self.decoder(x, h)
            fed = torch.tanh(self.join(torch.cat((h, context), -1)))
            outs.append(self.head(fed))
        return torch.stack(outs, 1)


def last(out):
    return out[:, -1, 3]


@pytest.mark.quick_diagonal(3)  # quick: every cell, every expansion
@pytest.mark.parametrize("expansion", ["secant", "operating", "gates", "shares"])
@pytest.mark.parametrize("feeds", [False, True])
@pytest.mark.parametrize("cell", [nn.GRUCell, nn.LSTMCell])
def test_source_and_prefix_share_one_ledger(cell, feeds, expansion):
    torch.manual_seed(0)
    for b, found in enumerate(
        unrolled.explain_batch(Translator(cell, feeds), SOURCE, TARGET, target=last, expansion=expansion)
    ):
        source, prefix = found.sequences
        assert (source.name, prefix.name) == ("encoder", "decoder")
        assert source.tokens == tuple(map(str, SOURCE[b].tolist()))
        assert prefix.tokens == tuple(map(str, TARGET[b].tolist()))
        assert source.directions == ("forward", "backward")
        assert abs(found.ledger.remainder) < 1e-13
        assert found.ledger.ngrams == pytest.approx(source.ledger.ngrams + prefix.ledger.ngrams, abs=1e-13)
        assert found.ledger.bias == pytest.approx(sum(found.biases.values()), abs=1e-13)


@pytest.mark.parametrize("feeds", [False, True])
@pytest.mark.parametrize("cell", [nn.GRUCell, nn.LSTMCell])
def test_without_biases_the_n_grams_of_a_token_sum_to_its_account(cell, feeds):
    torch.manual_seed(0)
    model = Translator(cell, feeds, bias=False)
    found = unrolled.explain(model, SOURCE[:1], TARGET[:1], target=last)
    account = unrolled.account(model, SOURCE[:1], TARGET[:1], target=last)
    for sequence, expected in zip(found.sequences, account.texts.values(), strict=True):
        torch.testing.assert_close(sequence.token_scores, expected[0], atol=1e-13, rtol=0)


def test_a_decoder_that_reads_no_source_has_no_part_of_it():
    class Severed(Translator):
        def forward(self, source, target):
            return super().forward(source[:, :1] * 0, target)

    torch.manual_seed(0)
    model = Severed()
    found = unrolled.explain(model, SOURCE[:1], TARGET[:1], target=last)
    assert found.sequences[0].tokens == (str(int(SOURCE[0, 0])),)  # named as given, though 0 is looked up
    assert abs(found.ledger.remainder) < 1e-13


def test_one_network_is_opened_where_it_is_named():
    torch.manual_seed(0)
    model = Translator()
    whole = unrolled.explain(model, SOURCE[:1], TARGET[:1], target=last)
    source = unrolled.explain(model, SOURCE[:1], TARGET[:1], target=last, rnn="encoder")
    torch.testing.assert_close(
        source.triangle.contributions, whole.sequences[0].triangle.contributions, atol=1e-13, rtol=0
    )
    assert abs(source.ledger.remainder) < 1e-13


def test_words_are_given_by_name():
    torch.manual_seed(0)
    words = {"encoder": list("abcde"), "decoder": list("wxyz")}
    found = unrolled.explain(Translator(), SOURCE[:1], TARGET[:1], target=last, tokens=words)
    assert [each.tokens for each in found.sequences] == [tuple("abcde"), tuple("wxyz")]
    assert found.tokens == tuple("abcdewxyz")
    with pytest.raises(
        unrolled.UsageError, match=r"tokens names 'encodr'; expected names of sequences: encoder, decoder"
    ):
        unrolled.explain(Translator(), SOURCE[:1], TARGET[:1], target=last, tokens={"encodr": list("abcde")})
    with pytest.raises(unrolled.ShapeError, match=r"2 tokens for decoder of 4 positions"):
        unrolled.explain(Translator(), SOURCE[:1], TARGET[:1], target=last, tokens={"decoder": ["a", "b"]})


def test_no_n_gram_reaches_from_one_sequence_into_another():
    torch.manual_seed(0)
    found = unrolled.explain(Translator(), SOURCE[:1], TARGET[:1], target=last)
    assert {n.sequence for n in found.ngrams()} == {"encoder", "decoder"}
    assert sum(n.contribution for n in found.ngrams()) == pytest.approx(found.ledger.ngrams, abs=1e-13)
    assert found.score(5, 9) == pytest.approx(found.sequences[1].score(0, 4))
    with pytest.raises(unrolled.UsageError, match=r"\[4, 6\) are of two sequences"):
        found.score(4, 6)


def test_it_is_shown_in_every_form(tmp_path):
    torch.manual_seed(0)
    found = unrolled.explain(Translator(), SOURCE[:1], TARGET[:1], target=last)
    text = found.render(width=90)
    assert "n-grams of encoder" in text
    assert "n-grams of decoder" in text
    page = found.save_html(tmp_path / "page.html").read_text()
    assert "encoder" in page
    assert "decoder" in page
    assert len(found.to_records()) == len(list(found.ngrams()))


def test_numbers_that_are_fed_back_lead_to_the_encoder():
    class Forecast(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.LSTM(2, D, batch_first=True), nn.LSTM(1, D, batch_first=True)
            self.head = nn.Linear(D, 1)

        def forward(self, x, steps=3):
            _, state = self.encoder(x)
            y, ys = x[:, -1:, :1], []
            for _ in range(steps):
                out, state = self.decoder(y, state)
                y = self.head(out)
                ys.append(y)
            return torch.cat(ys, 1)[..., 0]

    torch.manual_seed(0)
    found = unrolled.explain(Forecast().double(), torch.randn(1, 6, 2, dtype=torch.float64), target=2)
    assert [each.name for each in found.sequences] == ["encoder", "decoder"]
    assert abs(found.ledger.remainder) < 1e-13


class MaskedPointer(nn.Module):
    """Points at one position after another; those that it has pointed at are masked."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.encoder = nn.Embedding(9, 4), nn.GRU(4, 4, batch_first=True)
        self.decoder, self.query = nn.GRUCell(4, 4), nn.Linear(4, 4)
        self.double()

    def forward(self, tokens):
        x = self.embed(tokens)
        keys, last = self.encoder(x)
        state, read = last[0], torch.zeros_like(last[0])
        mask, scores = torch.zeros(tokens.shape, dtype=torch.bool), []
        for _ in range(2):
            state = self.decoder(read, state)
            scores.append((keys * self.query(state)[:, None]).sum(-1).masked_fill(mask, -1e9))
            place = scores[-1].argmax(1)
            read, mask = x[torch.arange(len(x)), place], mask.scatter(1, place[:, None], True)
        return torch.stack(scores, dim=1)


def test_a_masked_score_of_one_example_says_that_it_changes_with_no_state():
    model, tokens = MaskedPointer(), torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
    place = int(model(tokens)[0, 0].argmax())
    assert int(model(tokens)[1, 0].argmax()) != place

    def target(out):
        return out[:, 1, place]

    with pytest.raises(UsageError, match=r"example 0 .* changes with no state, as a masked .* rnn='encoder'"):
        unrolled.explain_batch(model, tokens, target=target)
    assert not unrolled.explain(model, tokens[:1], target=target).token_scores.any()
    first, second = unrolled.explain_batch(model, tokens, target=target, rnn="encoder")
    assert not first.token_scores.any()
    assert second.token_scores.any()
