"""Every position bears the token that the network read there, whatever the model does to its text; or a note."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

import unrolled
from unrolled.errors import ShapeError

V, E, D = 30, 4, 5
IDS = torch.tensor([[7, 3, 3, 9, 4]])
WORDS = ["seven", "three", "3rd", "nine", "four"]


class Model(nn.Module):
    """``way`` is what the model does between its ids and the vectors that its network reads."""

    def __init__(self, way, both=False, padding_idx=None):
        super().__init__()
        torch.manual_seed(0)
        self.way = way
        self.embed = nn.Embedding(V, E, padding_idx=padding_idx)
        self.norm, self.project = nn.LayerNorm(E), nn.Linear(E, E)
        self.conv = nn.Conv1d(E, E, 3, padding=1)
        self.register_buffer("table", torch.arange(V).flip(0))
        self.rnn = nn.GRU(E, D, batch_first=True, bidirectional=both)
        self.head = nn.Linear(D * (1 + both), 2)

    def forward(self, ids, *more):
        return self.head(self.rnn(self.way(self, ids, *more))[0].mean(1))


def shifted(model, ids):
    start = torch.full((len(ids), 1), 1)
    return model.embed(torch.cat([start, ids[:, :-1]], 1))


def written(model, ids):
    padded = ids.new_zeros(len(ids), ids.shape[1] + 2)
    padded[:, 1:-1] = ids
    return model.embed(padded)


def shuffled(model, ids):
    order = torch.tensor([4, 2, 0, 1, 3])
    return model.embed(ids)[:, order]


def frozen(model, ids):
    with torch.no_grad():
        return model.embed(ids.flip(1)[:, :2])


def by_hand(model, ids):
    return model.embed.weight[ids.flip(1)]


def one_hot(model, ids):
    return F.one_hot(ids.flip(1), V).float() @ model.embed.weight.detach()


def zeros(size):
    return torch.zeros(*IDS.shape, size)


FOLLOWED = {
    "as it is": (lambda m, ids: m.embed(ids), WORDS),
    "reversed ids": (lambda m, ids: m.embed(ids.flip(1)), WORDS[::-1]),
    "reversed vectors": (lambda m, ids: m.embed(ids).flip([1]), WORDS[::-1]),
    "shifted": (shifted, ["‹1›", *WORDS[:-1]]),
    "padded by F.pad": (lambda m, ids: m.embed(F.pad(ids, (1, 1), value=2)), ["‹2›", *WORDS, "‹2›"]),
    "written into a padded tensor": (written, ["‹0›", *WORDS, "‹0›"]),
    "truncated": (lambda m, ids: m.embed(ids[:, 2:]), WORDS[2:]),
    "shuffled": (shuffled, [WORDS[k] for k in (4, 2, 0, 1, 3)]),
    "ids moved up": (lambda m, ids: m.embed(ids.flip(1) + 3), WORDS[::-1]),
    "ids put in for others": (
        lambda m, ids: m.embed(torch.where(ids > 5, 2, ids)),
        ["‹2›", "three", "3rd", "‹2›", "four"],
    ),
    "ids looked up in a table": (lambda m, ids: m.embed(m.table[ids.flip(1)]), WORDS[::-1]),
    "projected and normalised": (lambda m, ids: m.project(m.norm(m.embed(ids) * 2)).relu().flip(1), WORDS[::-1]),
    "positions added": (lambda m, ids: m.embed(ids.flip(1)) + m.embed(torch.arange(ids.shape[1])), WORDS[::-1]),
    "vectors without gradient": (frozen, WORDS[:2:-1]),
    "a table of the model's own": (by_hand, WORDS[::-1]),
    "one-hot": (one_hot, WORDS[::-1]),
    "gathered": (lambda m, ids: m.embed.weight.gather(0, ids[0].flip(0)[:, None].expand(-1, E))[None], WORDS[::-1]),
    "columns of a table": (lambda m, ids: m.embed.weight.T[:, ids[0].flip(0)].T[None], WORDS[::-1]),
    "scattered": (lambda m, ids: zeros(V).scatter(2, ids.flip(1)[..., None], 1.0) @ m.embed.weight, WORDS[::-1]),
    "picked by a named index": (lambda m, ids: m.embed.weight.index_select(0, index=ids[0].flip(0))[None], WORDS[::-1]),
    "in a list": (lambda m, ids: pad_sequence([m.embed(row) for row in ids], batch_first=True), WORDS),
    "two at a time": (lambda m, ids: m.embed(ids)[:, :4].view(1, 2, 2, E).sum(2), ["seven three", "3rd nine"]),
}


@pytest.mark.parametrize("way", FOLLOWED, ids=str)
def test_words_follow_their_tokens(way):
    change, words = FOLLOWED[way]
    found = unrolled.explain(Model(change), IDS, target=0, tokens=WORDS)
    assert list(found.tokens) == words
    assert not [note for note in found.notes if "as large as their sum" not in note]  # parts may cancel


def test_ids_that_python_made_are_not_guessed():
    model = Model(lambda m, ids: m.embed(torch.tensor(ids.tolist()).flip(1)))
    found = unrolled.explain(model, IDS, target=0)
    assert found.tokens == ("x0", "x1", "x2", "x3", "x4")
    assert "could not be found" in found.notes[0]


def test_without_words_tokens_are_named_by_the_ids_that_the_model_was_given():
    for way in ("reversed ids", "ids moved up"):
        assert unrolled.explain(Model(FOLLOWED[way][0]), IDS, target=0).tokens == ("4", "9", "3", "3", "7")
    assert unrolled.explain(Model(shifted), IDS, target=0).tokens == ("1", "7", "3", "3", "9")


def behind(first):
    return lambda m, ids, *more: torch.cat([first(m, ids, *more), m.embed(ids)], 1)


BESIDE = {
    "a learned vector": (behind(lambda m, ids: m.start.expand(len(ids), -1, -1)), "‹no token›"),
    "zeros": (lambda m, ids: F.pad(m.embed(ids), (0, 0, 1, 0)), "‹no token›"),
    "an id of the model's own": (behind(lambda m, ids: m.embed(torch.full((len(ids), 1), 2))), "‹2›"),
}


@pytest.mark.parametrize("way", BESIDE, ids=str)
def test_tokens_keep_their_names_beside_vectors_of_the_models_own(way):
    change, first = BESIDE[way]
    model = Model(change)
    model.start = nn.Parameter(torch.randn(1, 1, E))
    words = [*WORDS[:-1], ""]  # an empty word is a word
    found = unrolled.explain(model, IDS, target=0, tokens=words)
    assert list(found.tokens) == [first, *words]
    assert unrolled.explain(model, IDS, target=0, tokens=words, call=0).tokens == found.tokens  # by all calls
    assert not [note for note in found.notes if "as large as their sum" not in note]
    assert unrolled.explain(model, IDS, target=0).tokens[1:] == ("7", "3", "3", "9", "4")
    both = unrolled.explain_batch(model, torch.cat([IDS, IDS.flip(1)]), target=0, tokens=[WORDS, WORDS[::-1]])
    assert [each.tokens[1:] for each in both.members] == [tuple(WORDS), tuple(WORDS[::-1])]
    named = unrolled.explain(model, IDS, target=0, tokens=["<s>", *WORDS])
    assert list(named.tokens) == ["<s>", *WORDS]


OTHERS = {
    "tokens of another argument": behind(lambda m, _, more: m.embed(more)),
    "tokens of another table": lambda m, ids, _: torch.cat([m.other(ids[:, :1]), m.embed(ids[:, 1:])], 1),
    "ids of another table that cannot be followed": lambda m, ids, _: torch.cat(
        [m.other(ids[:, :1].float().long()), m.embed(ids[:, 1:])], 1
    ),
}


@pytest.mark.parametrize("way", OTHERS, ids=str)
def test_positions_that_read_other_tokens_are_not_said_to_read_none(way):
    model = Model(OTHERS[way])
    model.other = nn.Embedding(V, E)
    found = unrolled.explain(model, IDS, IDS[:, :1], target=0)
    assert found.tokens == tuple(f"x{t}" for t in range(len(found.tokens)))
    assert "joins those of several arguments or tables" in found.notes[0]


MIXED = {
    "a convolution": lambda m, ids: m.conv(m.embed(ids).transpose(1, 2)).transpose(1, 2),
    "a sum of neighbours": lambda m, ids: m.embed(ids) + m.embed(ids).roll(1, 1),
    "bags of one id": lambda m, ids: F.embedding_bag(ids.view(-1, 1), m.embed.weight)[None],
    "vectors that are read twice": lambda m, ids: m.embed(ids).repeat_interleave(2, 1)[:, 1:6],
}


@pytest.mark.parametrize("way", MIXED, ids=str)
def test_where_the_order_cannot_be_found_a_note_says_so(way):
    found = unrolled.explain(Model(MIXED[way]), IDS, target=0)
    assert found.tokens == ("x0", "x1", "x2", "x3", "x4")
    assert "which token each position reads could not be found" in found.notes[0]
    assert "positions are numbered" in found.notes[0]
    found = unrolled.explain(Model(MIXED[way]), IDS, target=0, tokens=WORDS)
    assert list(found.tokens) == WORDS
    assert "tokens are named in the order in which they were given" in found.notes[0]
    with pytest.raises(ShapeError, match="3 tokens for a sequence of 5; expected one for each position"):
        unrolled.explain(Model(MIXED[way]), IDS, target=0, tokens=WORDS[:3])


@pytest.mark.parametrize("way", ["as it is", "reversed ids", "shifted", "a table of the model's own"])
@pytest.mark.parametrize("count", [1, 3, 6, 7])
def test_words_whose_number_does_not_fit_are_refused(way, count):
    with pytest.raises(ShapeError, match=f"{count} token"):
        unrolled.explain(Model(FOLLOWED[way][0]), IDS, target=0, tokens=[*WORDS, "x", "y"][:count])


def test_padding_needs_no_word_and_anything_else_does():
    model = Model(lambda m, ids: m.embed(ids))
    right, left = torch.tensor([[5, 6, 7, 0, 0]]), torch.tensor([[0, 0, 5, 6, 7]])
    assert unrolled.explain(model, right, target=0, tokens=list("abc")).tokens == ("a", "b", "c", "‹pad›", "‹pad›")
    assert unrolled.explain(model, left, target=0, tokens=list("abc")).tokens == ("‹pad›", "‹pad›", "a", "b", "c")
    with pytest.raises(ShapeError, match="3 tokens for a sequence of 5"):
        unrolled.explain(model, right + 1, target=0, tokens=list("abc"))  # 1 is padding where the model says so
    marked = Model(lambda m, ids: m.embed(ids), padding_idx=1)
    assert unrolled.explain(marked, right + 1, target=0, tokens=list("abc")).tokens[3:] == ("‹pad›", "‹pad›")
    with pytest.raises(ShapeError, match="3 tokens for a sequence of 5"):
        unrolled.explain(marked, right, target=0, tokens=list("abc"))


def by_length(model, ids, lengths):
    order = lengths.argsort(descending=True)
    packed = pack_padded_sequence(model.embed(ids[order]), lengths[order], batch_first=True)
    out = nn.utils.rnn.pad_packed_sequence(model.rnn(packed)[0], batch_first=True)[0].sum(1)
    return out[order.argsort()]


@pytest.mark.parametrize("both", [False, True])
def test_a_batch_that_the_model_sorts_by_length_keeps_its_words(both):
    class Sorted(Model):
        def forward(self, ids, lengths):
            return self.head(by_length(self, ids, lengths))

    ids = torch.tensor([[5, 6, 0, 0], [1, 2, 3, 4], [8, 8, 8, 0]])
    lengths = torch.tensor([2, 4, 3])
    model = Sorted(None, both)
    found = unrolled.explain_batch(model, ids, lengths, target=0)
    assert [each.tokens for each in found] == [("5", "6"), ("1", "2", "3", "4"), ("8", "8", "8")]
    words = [["five", "six"], ["one", "two", "three", "four"], ["8a", "8b", "8c"]]
    found = unrolled.explain_batch(model, ids, lengths, target=0, tokens=words)
    assert [list(each.tokens) for each in found] == words
    with pytest.raises(ShapeError, match="2 tokens for a sequence of 3"):
        unrolled.explain_batch(model, ids, lengths, target=0, tokens=[*words[:2], ["8a", "8b"]])


def test_ids_of_shape_time_and_batch_are_told_by_what_each_sequence_reads():
    class TimeFirst(Model):
        def forward(self, ids):
            return self.head(self.rnn(self.embed(ids))[0].sum(0))

    model = TimeFirst(None)
    model.rnn.batch_first = False
    square = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    found = unrolled.explain_batch(model, square, target=0, tokens=[list("abc"), list("def"), list("ghi")])
    assert [each.tokens for each in found] == [("a", "b", "c"), ("d", "e", "f"), ("g", "h", "i")]
    assert unrolled.explain_batch(model, square, target=0)[1].tokens == ("2", "5", "8")


def test_single_tokens_of_a_batch_that_is_time_first_have_each_its_own_word():
    class TimeFirst(Model):
        def forward(self, ids):
            lengths = (ids != 0).sum(0)
            return self.head(self.rnn(pack_padded_sequence(self.embed(ids), lengths, enforce_sorted=False))[1][0])

    model = TimeFirst(None)
    model.rnn.batch_first = False
    found = unrolled.explain_batch(model, torch.tensor([[3, 4], [0, 0]]), target=1, tokens=[["a"], ["b"]])
    assert [each.tokens for each in found] == [("a",), ("b",)]
    assert [each.tokens for each in unrolled.explain_batch(model, torch.tensor([[3, 4], [0, 0]]), target=1)] == [
        ("3",),
        ("4",),
    ]
    found = unrolled.explain_batch(model, torch.tensor([[3, 4], [5, 0]]), target=1, tokens=[["a", "c"], ["b"]])
    assert [each.tokens for each in found] == [("a", "c"), ("b",)]


def test_ids_of_a_mask_are_no_words():
    class Masked(Model):
        def forward(self, segments, ids, lengths):
            return self.head(self.rnn(self.embed(segments) + self.embed(ids))[0].mean(1)) / lengths[:, None]

    segments = torch.ones_like(IDS)
    assert unrolled.explain(Masked(None), segments, IDS, torch.tensor([5]), target=0).tokens == (
        "7",
        "3",
        "3",
        "9",
        "4",
    )
    ones = Model(FOLLOWED["as it is"][0])
    assert unrolled.explain(ones, segments, target=0).tokens == ("1",) * 5


def test_lengths_of_a_batch_of_single_frames_are_no_ids():
    class Frames(Model):
        def forward(self, frames, lengths):
            return self.head(self.rnn(frames)[0].sum(1)) / lengths[:, None]

    found = unrolled.explain_batch(Frames(None), torch.rand(2, 1, E), torch.tensor([1, 1]), target=0)
    assert [each.tokens for each in found] == [("x0",), ("x0",)]


def test_words_may_be_numbers():
    assert unrolled.explain(Model(FOLLOWED["as it is"][0]), IDS, target=0, tokens=[1, 2, 3, 4, 5]).tokens[4] == "5"


def test_frames_are_named_by_their_places():
    class Frames(Model):
        def forward(self, frames):
            return self.head(self.rnn(self.way(self, frames))[0].mean(1))

    frames = torch.randn(1, 4, E)
    assert unrolled.explain(Frames(lambda _, x: x), frames, target=0).tokens == ("x0", "x1", "x2", "x3")
    found = unrolled.explain(Frames(lambda _, x: x.flip(1)), frames, target=0)
    assert found.tokens == ("x3", "x2", "x1", "x0")
    assert not [note for note in found.notes if "as large as their sum" not in note]
    found = unrolled.explain(Frames(lambda m, x: m.project(x).flip(1)), frames, target=0, tokens=list("abcd"))
    assert found.tokens == ("d", "c", "b", "a")
    mixed = unrolled.explain(Frames(lambda _, x: x.cumsum(1)), frames, target=0)
    assert mixed.tokens == ("x0", "x1", "x2", "x3")
    assert any("no contributions of single numbers are shown" in note for note in mixed.notes)
    assert not any("which token" in note for note in mixed.notes)


def test_the_model_is_left_as_it_was():
    model = Model(FOLLOWED["reversed ids"][0])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    unrolled.explain(model, IDS, target=0, tokens=WORDS)
    assert "forward" not in model.rnn.__dict__
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
