"""Beside each score of a model of several networks, or of a loop, stands the word that made it; or a note says not."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from unrolled.errors import ShapeError

V, E, D = 20, 4, 5
IDS, WORDS = torch.tensor([[3, 4, 5, 6]]), "not a bad film".split()
OTHER = 9


class Model(nn.Module):
    """``way`` is the forward pass of a model of two networks and a cell."""

    def __init__(self, way):
        super().__init__()
        torch.manual_seed(0)
        self.way = way
        self.embed, self.tags = nn.Embedding(V, E, padding_idx=0), nn.Embedding(V, E)
        self.norm, self.mix = nn.LayerNorm(E), nn.Conv1d(E, E, 3, padding=1)
        self.one, self.two = (nn.GRU(E, D, batch_first=True) for _ in range(2))
        self.cell, self.head = nn.GRUCell(E, D), nn.Linear(D, 2)
        self.double().eval()

    def forward(self, *given):
        return self.head(self.way(self, *given))


def loop(model, x, order):
    h = x.new_zeros(len(x), D)
    for k in order:
        h = model.cell(x[:, k], h)
    return h


def both_ways(model, x):
    return model.one(x)[0][:, -1] + model.two(x.flip(1))[0][:, -1]


def in_halves(model, ids):
    x = model.embed(ids.flip(1)) * 2
    state = model.one(x[:, :2])[1]
    return model.one(x[:, 2:], state)[0][:, -1] + model.two(x)[0][:, -1]


def without_gradient(model, ids):
    with torch.no_grad():
        x = model.norm(model.embed(ids)).detach()
    return loop(model, x, (3, 2, 1, 0))


REVERSED = {
    "normalised": lambda m, ids: both_ways(m, m.norm(m.embed(ids))),
    "scaled": lambda m, ids: both_ways(m, m.embed(ids) * E**0.5),
    "with positions": lambda m, ids: both_ways(m, m.embed(ids) + m.tags(torch.arange(ids.shape[1]))),
    "as it is": lambda m, ids: both_ways(m, m.embed(ids)),
    "reversed ids": lambda m, ids: m.one(m.norm(m.embed(ids)))[0][:, -1] + m.two(m.embed(ids.flip(1)))[0][:, -1],
    "a loop from the end": lambda m, ids: loop(m, m.embed(ids) * 3, reversed(range(ids.shape[1]))),
    "a loop without gradients": without_gradient,
    "in halves": in_halves,
    "one-hot integers": lambda m, ids: loop(
        m, ids.new_zeros(1, 4, V).scatter(2, ids[..., None], 1).double() @ m.embed.weight, (3, 2, 1, 0)
    ),
    "compared": lambda m, ids: loop(m, (ids[..., None] == torch.arange(V)).double() @ m.embed.weight, (3, 2, 1, 0)),
    "columns of a table": lambda m, ids: loop(m, m.embed.weight.T[:, ids[0]].T[None], (3, 2, 1, 0)),
    "a table of vectors": lambda m, ids: loop(m, m.norm(m.embed.weight[ids]), (3, 2, 1, 0)),
}


def named_by_change(model, ids, words):
    """The words of each sequence, found by changing one token at a time and looking which unigram moves."""
    before = unrolled.explain(model, ids, target=1).sequences
    found = [[""] * ids.shape[1] for _ in before]
    for k, word in enumerate(words):
        changed = ids.clone()
        changed[0, k] = OTHER
        after = unrolled.explain(model, changed, target=1).sequences
        for names, one, other in zip(found, before, after, strict=True):
            moves = (other.triangle.scores - one.triangle.scores)[0].diagonal().abs() > 1e-9
            moved = moves.nonzero().flatten().tolist()
            assert len(moved) == 1
            names[moved[0]] = word
    return [tuple(names) for names in found]


@pytest.mark.slow
@pytest.mark.parametrize("way", REVERSED, ids=str)
def test_the_word_of_a_score_is_that_of_the_token_that_moves_it(way):
    model = Model(REVERSED[way])
    names = [each.name for each in unrolled.explain(model, IDS, target=1).sequences]
    given = WORDS if names == [""] else dict.fromkeys(names, WORDS)
    found = unrolled.explain(model, IDS, target=1, tokens=given)
    assert not [note for note in found.notes if "could not be found" in note]
    assert [each.tokens for each in found.sequences] == named_by_change(model, IDS, WORDS)
    assert found.sequences[-1].tokens == tuple(WORDS[::-1])
    # and without words by the ids, which the model's own order does not reverse
    plain = unrolled.explain(model, IDS, target=1)
    assert plain.sequences[-1].tokens == ("6", "5", "4", "3")


@pytest.mark.parametrize("way", REVERSED, ids=str)
def test_one_text_names_all_sequences_that_read_it(way):
    model = Model(REVERSED[way])
    by_name = dict.fromkeys([each.name for each in unrolled.explain(model, IDS, target=1).sequences], WORDS)
    apart = unrolled.explain(model, IDS, target=1, tokens=WORDS if list(by_name) == [""] else by_name)
    assert [each.tokens for each in unrolled.explain(model, IDS, target=1, tokens=WORDS).sequences] == [
        each.tokens for each in apart.sequences
    ]


def test_a_text_each_names_the_sequences_of_a_batch():
    model = Model(REVERSED["as it is"])
    texts = [WORDS, "a very good film".split()]
    found = unrolled.explain_batch(model, torch.cat([IDS, IDS + 4]), target=1, tokens=texts)
    for text, each in zip(texts, found, strict=True):
        assert [part.tokens for part in each.sequences] == [tuple(text), tuple(text[::-1])]


class Document(nn.Module):
    """A network over the sentences of a document, and one over its sentences' last states."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head = nn.Embedding(V, E), nn.Linear(D, 2)
        self.of_words, self.of_sentences = nn.GRU(E, D, batch_first=True), nn.GRU(D, D, batch_first=True)
        self.double().eval()

    def forward(self, document):
        sentences = self.of_words(self.embed(document[0]))[1]
        return self.head(self.of_sentences(sentences)[0][:, -1])


PARTS = {
    "sentences": (Document(), torch.tensor([[[3, 7, 1], [5, 2, 4]]])),
    "columns": (
        Model(lambda m, x: m.one(m.embed(x[:, 0]))[0][:, -1] + m.two(m.embed(x[:, 1]))[0][:, -1]),
        torch.tensor([[[3, 7, 1], [5, 2, 4]]]),
    ),
    "rows": (
        Model(lambda m, x: m.one(m.embed(x[:1]))[0][:, -1] + m.two(m.embed(x[1:]))[0][:, -1]),
        torch.tensor([[3, 7, 1], [5, 2, 4]]),
    ),
}


@pytest.mark.parametrize("parts", PARTS)
def test_one_text_names_no_two_parts_of_one_argument(parts):
    with pytest.raises(ShapeError, match="expected words for each sequence"):
        unrolled.explain(*PARTS[parts], target=1, tokens=["a", "bad", "film"])


def test_one_text_names_no_two_texts():
    model = Model(lambda m, one, two: m.one(m.embed(one))[0][:, -1] + m.two(m.embed(two))[0][:, -1])
    with pytest.raises(ShapeError, match="expected words for each sequence"):
        unrolled.explain(model, IDS, IDS + 4, target=1, tokens=WORDS)
    found = unrolled.explain(model, IDS, IDS + 4, target=1, tokens=[WORDS, WORDS[::-1]])
    assert [part.tokens for part in found.sequences] == [tuple(WORDS), tuple(WORDS[::-1])]


def test_a_second_network_that_is_not_called_changes_no_name():
    model = Model(lambda m, ids: m.one(m.embed(ids.roll(1, 1)))[0][:, -1])
    assert unrolled.explain(model, IDS, target=1, tokens=WORDS).tokens == ("film", "not", "a", "bad")
    assert unrolled.explain(model, IDS, target=1).tokens == ("6", "3", "4", "5")


def test_padding_of_a_batch_is_reversed_with_its_words():
    ids = torch.tensor([[3, 4, 5, 6], [7, 6, 0, 0]])
    words = [WORDS, ["good", "film"]]
    model = Model(lambda m, ids: both_ways(m, m.embed(ids)))
    one, other = unrolled.explain_batch(model, ids, target=1, tokens={"one": words, "two": words})
    assert [each.tokens for each in one.sequences] == [tuple(WORDS), tuple(WORDS[::-1])]
    padded = ("good", "film", "‹pad›", "‹pad›")
    assert [each.tokens for each in other.sequences] == [padded, padded[::-1]]


def test_ids_are_those_that_were_looked_up_in_the_table_that_was_read():
    """A row of another table, or an equal row of the same one, is not the token."""
    given, tags = torch.tensor([[11, 12, 13, 14]]), torch.tensor([[1, 2, 1, 4]])

    def way(m, ids, kinds):
        return loop(m, m.embed(ids) + m.tags(kinds), range(4))

    assert unrolled.explain(Model(way), given, tags, target=1).tokens == ("11", "12", "13", "14")
    model = Model(lambda m, ids: loop(m, m.embed(ids), range(4)))
    with torch.no_grad():
        model.embed.weight[12:] = model.embed.weight[1]
    assert unrolled.explain(model, given, target=1).tokens == ("11", "12", "13", "14")


MIXED = {
    "a convolution": lambda m, ids: both_ways(m, m.mix(m.embed(ids).mT).mT),
    "a sum of neighbours": lambda m, ids: both_ways(m, m.embed(ids) + m.embed(ids).roll(1, 1)),
    "bags of one id": lambda m, ids: loop(m, F.embedding_bag(ids.T, m.embed.weight)[None], range(4)),
    "neighbours of one lookup": lambda m, ids: loop(m, m.embed(ids) + m.embed(ids).roll(1, 1), range(4)),
}


@pytest.mark.parametrize("way", MIXED, ids=str)
def test_a_mixture_of_tokens_bears_no_word(way):
    model = Model(MIXED[way])
    plain = unrolled.explain(model, IDS, target=1)
    assert all(each.tokens == ("x0", "x1", "x2", "x3") for each in plain.sequences)
    assert "positions are numbered" in plain.notes[0]
    names = [each.name for each in plain.sequences]
    found = unrolled.explain(model, IDS, target=1, tokens=WORDS if names == [""] else dict.fromkeys(names, WORDS))
    assert all(each.tokens == ("x0", "x1", "x2", "x3") for each in found.sequences)
    assert "the tokens that were given are not shown" in found.notes[0]


def test_ids_that_python_made_are_named_by_what_was_looked_up():
    model = Model(lambda m, ids: loop(m, m.embed(torch.tensor(ids.tolist()).flip(1)), range(4)))
    assert unrolled.explain(model, IDS, target=1).tokens == ("6", "5", "4", "3")
    found = unrolled.explain(model, IDS, target=1, tokens=WORDS)
    assert found.tokens == ("6", "5", "4", "3")
    assert "the tokens that were given are not shown" in found.notes[0]


def test_a_decoder_names_what_it_was_given_and_what_it_put_in():
    def way(m, source, target):
        state = m.one(m.embed(source))[1][0]
        x = torch.cat((m.embed(torch.full((len(target), 1), 2)), m.embed(target)), 1)
        for k in range(x.shape[1]):
            state = m.cell(x[:, k], state)
        return state

    source, target = IDS, torch.tensor([[7, 8, 9]])
    plain = unrolled.explain(Model(way), source, target, target=1).sequences
    assert [each.tokens for each in plain] == [("3", "4", "5", "6"), ("2", "7", "8", "9")]
    words = {"one": WORDS, "cell": ["ein", "guter", "Film"]}
    found = unrolled.explain(Model(way), source, target, target=1, tokens=words).sequences
    assert [each.tokens for each in found] == [tuple(WORDS), ("‹2›", "ein", "guter", "Film")]
    with pytest.raises(ShapeError, match="2 tokens for cell of 4 positions"):
        unrolled.explain(Model(way), source, target, target=1, tokens={"cell": ["ein", "Film"]})


def hops(model, ids):
    """Read the states of a text by attention, in three steps."""
    memory = model.one(model.embed(ids))[0]
    state = memory[:, -1]
    for _ in range(3):
        weights = torch.softmax(memory @ state[..., None], 1)
        state = model.cell((weights * memory).sum(1)[:, :E], state)
    return state


def test_words_of_the_one_text_are_not_those_of_a_sequence_that_reads_its_states():
    found = unrolled.explain(Model(hops), IDS, target=1, tokens=WORDS)
    assert [each.tokens for each in found.sequences] == [tuple(WORDS), ("x0", "x1", "x2")]
    assert "positions are numbered" in found.sequences[1].notes[0]
    named = unrolled.explain(Model(hops), IDS, target=1, tokens={"one": WORDS})
    assert named.tokens == found.tokens
    each = unrolled.explain_batch(Model(hops), IDS.repeat(2, 1), target=1, tokens=[WORDS, WORDS])
    assert [one.tokens for one in each] == [found.tokens] * 2
    with pytest.raises(ShapeError, match="3 tokens for one of 4 positions"):  # the control: it is the text that counts
        unrolled.explain(Model(hops), IDS, target=1, tokens={"one": WORDS[:3]})


def test_words_of_the_one_text_name_the_numbers_beside_its_words():
    model = Model(lambda m, ids, x: m.one(m.embed(ids))[0][:, -1] + m.two(x)[0][:, -1])
    beside, longer = (torch.randn(1, steps, E, dtype=torch.float64) for steps in (4, 6))
    found = unrolled.explain(model, IDS, beside, target=1, tokens=WORDS)
    assert [each.tokens for each in found.sequences] == [tuple(WORDS)] * 2
    other = unrolled.explain(model, IDS, longer, target=1, tokens=WORDS)  # the control: another number of steps
    assert [each.tokens for each in other.sequences] == [tuple(WORDS), tuple(f"x{k}" for k in range(6))]


def test_days_stand_beside_the_numbers_of_their_step():
    series, days = torch.randn(1, 4, E, dtype=torch.float64), ["mo", "tu", "we", "th"]
    model = Model(lambda m, x: both_ways(m, x))
    found = unrolled.explain(model, series, target=1, tokens={"one": days, "two": days})
    assert [each.tokens for each in found.sequences] == [tuple(days), tuple(days[::-1])]
    assert unrolled.explain(model, series, target=1).sequences[1].tokens == ("x3", "x2", "x1", "x0")
    backward = Model(lambda m, x: loop(m, m.norm(x), (3, 2, 1, 0)))
    assert unrolled.explain(backward, series, target=1, tokens=days).tokens == tuple(days[::-1])
    mixed = Model(lambda m, x: loop(m, x - x.mean(1, keepdim=True), (3, 2, 1, 0)))
    found = unrolled.explain(mixed, series, target=1, tokens=days)
    assert "tokens are named in the order in which they were given" in found.notes[0]


NUMBERED = "positions that read tokens of another argument or table are numbered"


def in_turns(model, ids, tags):
    return torch.stack([model.embed(ids), model.tags(tags)], dim=2).flatten(1, 2)


def with_a_start(model, ids, _):
    return torch.cat([model.head.weight[:1, None, :E].expand(len(ids), -1, -1), model.embed(ids)], dim=1)


@pytest.mark.parametrize(("read", "notes"), [(in_turns, 1), (with_a_start, 0), (lambda m, ids, _: m.embed(ids), 0)])
@pytest.mark.parametrize("tokens", [None, WORDS])
def test_positions_that_read_a_table_beside_that_of_the_words_are_noted(read, notes, tokens):
    model = Model(lambda self, *given: sum(rnn(read(self, *given))[1][0] for rnn in (self.one, self.two)))
    found = unrolled.explain(model, IDS, IDS + OTHER, target=1, tokens=tokens)
    labels = set(found.sequences[0].tokens)
    assert found.notes.count(NUMBERED) == notes
    assert (labels >= {"x1", "x3", "x5", "x7"}) is bool(notes)
    assert labels >= set(tokens or map(str, IDS[0].tolist()))
