"""Networks that a model calls for several sequences: siamese, hierarchical and character models, graphs."""

from __future__ import annotations

import json
import re

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import unrolled

V, E, D = 12, 4, 3


class Siamese(nn.Module):
    """Two texts by one encoder; max pooling, |u - v| and u ⊙ v."""

    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(V, E), nn.LSTM(E, D, bidirectional=True, batch_first=True)
        self.head = nn.Sequential(nn.Linear(8 * D, 5), nn.ReLU(), nn.Linear(5, 3))
        self.double().eval()

    def encode(self, ids):
        return self.rnn(self.embed(ids))[0].amax(1)

    def forward(self, one, other):
        u, v = self.encode(one), self.encode(other)
        return self.head(torch.cat((u, v, (u - v).abs(), u * v), -1))


ONE, OTHER = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]]), torch.tensor([[9, 8, 7], [1, 5, 3]])


@pytest.mark.parametrize("expansion", ["secant", "operating", "gates", "shares"])
def test_both_texts_of_a_pair_stand_in_one_ledger(expansion):
    torch.manual_seed(0)
    for b, found in enumerate(unrolled.explain_batch(Siamese(), ONE, OTHER, target=1, expansion=expansion)):
        assert [each.name for each in found.sequences] == ["rnn, call 0", "rnn, call 1"]
        assert [each.tokens for each in found.sequences] == [tuple(map(str, ids[b].tolist())) for ids in (ONE, OTHER)]
        assert abs(found.ledger.remainder) < 1e-13
        for each in found.sequences:
            ledger = each.ledger
            assert ledger.ngrams + ledger.initial + ledger.bias + ledger.remainder == pytest.approx(ledger.logit)


def test_a_page_shows_each_sequence_with_its_own_tokens_by_every_expansion(tmp_path):
    torch.manual_seed(0)
    model = Siamese()
    found, other = (unrolled.explain(model, ONE[:1], OTHER[:1], target=1, expansion=e) for e in ("secant", "gates"))
    text = found.save_html(tmp_path / "pair.html", other).read_text()
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    items = json.loads(block[1])["items"]
    assert [item["name"] for item in items] == [each.name for each in found.sequences]
    for item, *members in zip(items, found.sequences, other.sequences, strict=True):
        assert tuple(item["tokens"]) == members[0].tokens == members[1].tokens
        assert [panel["label"] for panel in item["panels"]] == ["secant", "gates"]
        for panel, member in zip(item["panels"], members, strict=True):
            assert panel["options"][0]["tokens"] == pytest.approx(member.token_scores.tolist(), rel=1e-5, abs=1e-9)
    with pytest.raises(unrolled.UsageError, match="expected explanations of the same sequences"):
        found.save_html(tmp_path / "mixed.html", other.sequences[0])
    for texts, target in (((OTHER[:1], ONE[:1]), 1), ((ONE[:1], OTHER[:1]), 0)):
        apart = unrolled.explain(model, *texts, target=target)
        with pytest.raises(unrolled.UsageError, match="one of another text or target"):
            found.save_html(tmp_path / "mixed.html", apart)


def test_a_figure_draws_no_phrase_of_two_texts():
    collections = pytest.importorskip("matplotlib.collections", reason="figures need the extra [figures]")
    torch.manual_seed(0)
    found = unrolled.explain(Siamese(), ONE[:1], OTHER[:1], target=1)
    drawn = [
        sum(len(each.get_paths()) for each in axes.collections if isinstance(each, collections.PolyCollection))
        for axes in found.figure().axes[: len(found.directions)]
    ]
    assert drawn == [10 + 6] * 2  # of four tokens and of three
    alone = [len(each) * (len(each) + 1) // 2 for each in found.sequences]
    assert drawn[0] == sum(alone) < len(found) * (len(found) + 1) // 2


def test_a_text_of_a_pair_is_that_text_where_the_other_is_no_part_of_the_output():
    class Sum(Siamese):
        def forward(self, one, other):
            return self.encode(one) + 0.0 * self.encode(other)

    class Alone(Siamese):
        def forward(self, one):
            return self.encode(one)

    torch.manual_seed(0)
    pair, alone = Sum(), Alone()
    alone.load_state_dict(pair.state_dict())
    found = unrolled.explain(pair, ONE[:1], OTHER[:1], target=1)
    expected = unrolled.explain(alone, ONE[:1], target=1)
    torch.testing.assert_close(
        found.sequences[0].triangle.contributions, expected.triangle.contributions, atol=1e-13, rtol=0
    )
    assert len(found.sequences) == 1


class Tagger(nn.Module):
    """A bidirectional LSTM over words, with the last states of one over each word's characters."""

    def __init__(self):
        super().__init__()
        self.letters, self.words = nn.Embedding(V, E), nn.Embedding(V, E)
        self.chars = nn.LSTM(E, D, bidirectional=True, batch_first=True)
        self.rnn = nn.LSTM(E + 2 * D, 5, bidirectional=True, batch_first=True)
        self.head = nn.Linear(10, 4)
        self.double().eval()

    def forward(self, words, letters, lengths):
        batch, time, longest = letters.shape
        flat = self.letters(letters.reshape(batch * time, longest))
        packed = pack_padded_sequence(flat, lengths.reshape(-1), batch_first=True, enforce_sorted=False)
        last = self.chars(packed)[1][0].transpose(0, 1).reshape(batch, time, -1)
        return self.head(self.rnn(torch.cat((self.words(words), last), -1))[0])


WORDS = torch.tensor([[3, 1, 4], [1, 5, 9]])
LETTERS = torch.tensor([[[1, 2, 0, 0], [3, 4, 5, 0], [6, 0, 0, 0]], [[7, 8, 9, 1], [2, 3, 0, 0], [4, 5, 6, 0]]])
LENGTHS = torch.tensor([[2, 3, 1], [4, 2, 3]])


def test_the_characters_of_every_word_belong_to_its_sentence_in_its_order():
    torch.manual_seed(0)
    model = Tagger()
    for b, found in enumerate(unrolled.explain_batch(model, WORDS, LETTERS, LENGTHS, target=lambda out: out[:, 1, 2])):
        *characters, words = found.sequences
        assert [each.tokens for each in characters] == [
            tuple(map(str, LETTERS[b, k, : LENGTHS[b, k]].tolist())) for k in range(3)
        ]
        assert words.tokens == tuple(map(str, WORDS[b].tolist()))
        assert abs(found.ledger.remainder) < 1e-13
    one = unrolled.explain(model, WORDS[1:], LETTERS[1:], LENGTHS[1:], target=lambda out: out[:, 1, 2])
    assert one.ledger == pytest.approx(found.ledger, abs=1e-12)


def test_one_number_of_a_batch_reads_the_sequences_of_its_own_example():
    torch.manual_seed(0)
    found = unrolled.explain(Tagger(), WORDS, LETTERS, LENGTHS, target=lambda out: out[1, 1, 2])
    assert found.sequences[-1].tokens == tuple(map(str, WORDS[1].tolist()))
    assert len(found.sequences) == 4
    assert abs(found.ledger.remainder) < 1e-13


def test_a_hierarchical_model_runs_its_word_network_once_a_sentence():
    class Hierarchical(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.words = nn.Embedding(V, E), nn.GRU(E, D, bidirectional=True, batch_first=True)
            self.sentences = nn.GRU(2 * D, D, bidirectional=True, batch_first=True)
            self.of_words, self.of_sentences, self.head = nn.Linear(2 * D, 1), nn.Linear(2 * D, 1), nn.Linear(2 * D, 2)

        def pool(self, attention, states):
            return (torch.softmax(attention(torch.tanh(states)), 1) * states).sum(1)

        def forward(self, sentences):
            read = [self.pool(self.of_words, self.words(self.embed(ids[None]))[0]) for ids in sentences]
            return self.head(self.pool(self.of_sentences, self.sentences(torch.stack(read, 1))[0]))

    torch.manual_seed(0)
    model, text = Hierarchical().double(), [torch.tensor(ids) for ids in ([1, 2, 3], [4, 5], [6, 7, 8, 9])]
    found = unrolled.explain(model, text, target=1)
    assert [len(each) for each in found.sequences] == [3, 2, 4, 3]
    assert [each.name for each in found.sequences] == [*(f"words, call {k}" for k in range(3)), "sentences"]
    assert abs(found.ledger.remainder) < 1e-13
    assert unrolled.explain(model, text, target=1, call=1).tokens == ("4", "5")


def test_the_nodes_of_a_graph_are_sequences_of_one_output():
    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.message, self.cell = nn.Embedding(V, E), nn.Linear(E, E), nn.GRUCell(E, E)
            self.head = nn.Linear(E, 2)

        def forward(self, nodes, edges):
            h = self.embed(nodes)
            for _ in range(3):
                h = self.cell(edges @ self.message(h), h)
            return self.head(h.sum(0, keepdim=True))

    torch.manual_seed(0)
    edges = torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]]).double()
    found = unrolled.explain(Graph().double(), torch.tensor([1, 2, 3, 4]), edges, target=1)
    assert len(found.sequences) == 4
    assert abs(found.ledger.remainder) < 1e-13


def test_examples_that_read_one_sequence_together_are_refused():
    class Shared(Siamese):
        def forward(self, one, other):
            return self.encode(one[:1]) + self.encode(other)

    torch.manual_seed(0)
    with pytest.raises(unrolled.UsageError, match="explain them one at a time"):
        unrolled.explain_batch(Shared(), ONE, OTHER, target=1)


def test_a_softmax_beside_the_one_that_is_followed_is_followed_as_well():
    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(V, E), nn.Linear(D, 3)
            self.one, self.other = (nn.GRU(E, D, batch_first=True) for _ in range(2))

        def forward(self, ids):
            x = self.embed(ids)
            return (self.head(self.one(x)[0][:, -1]).softmax(1) + self.head(self.other(x)[0][:, -1]).softmax(1)) / 2

    torch.manual_seed(0)
    found = unrolled.explain(Mixture().double(), ONE[:1], target=1)
    assert abs(found.ledger.remainder) < 1e-13
    assert len(found.sequences) == 2
    assert all(bool((each.token_scores != 0).all()) for each in found.sequences)
    account = unrolled.account(Mixture().double(), ONE[:1], target=1)
    assert not any("held" in note for note in (*found.notes, *account.notes))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_call_without_rows_counts_for_nothing(kind):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = kind(E, D, batch_first=True), nn.Linear(D, 2)

        def forward(self, series):
            self.rnn(series[:0])
            return self.head(self.rnn(series)[0][:, -1])

    torch.manual_seed(0)
    model, series = Twice().double(), torch.randn(1, 3, E).double()
    assert abs(unrolled.explain(model, series, target=1).ledger.remainder) < 1e-13
    assert unrolled.account(model, series, target=1).closes
    assert all(part.opens for part in unrolled.check(model, series, target=1).parts)
