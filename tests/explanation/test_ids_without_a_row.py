"""An id for which a model's embedding has no row is named, with its place and the ids that have one."""

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError


class Tagger(nn.Module):
    """Reads words and their tags, and asks a list by the length of the text."""

    def __init__(self, longest=9):
        super().__init__()
        self.words, self.tags = nn.Embedding(20, 4), nn.Embedding(5, 4)
        self.rnn, self.head = nn.GRU(4, 3, batch_first=True), nn.Linear(3, 2)
        self.of_length = torch.zeros(longest, 2, device="cpu")

    def forward(self, words, tags):
        states, _ = self.rnn(self.words(words) + self.tags(tags))
        return self.head(states[:, -1]) + self.of_length[words.shape[1]]


WORDS, TAGS = torch.tensor([[1, 19, 7]], device="cpu"), torch.tensor([[4, 0, 2]], device="cpu")


@pytest.mark.parametrize("entry", [unrolled.explain, unrolled.explain_batch, unrolled.account])
@pytest.mark.parametrize(("id_", "place"), [(20, 2), (-1, 0)])
def test_the_id_its_place_and_the_ids_with_rows_are_named(entry, id_, place):
    words = WORDS.clone()
    words[0, place] = id_
    with pytest.raises(UsageError, match=rf"the id {id_} at \(0, {place}\); expected ids from 0 to 19") as caught:
        entry(Tagger(), words, TAGS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bag", [False, True])
def test_the_embedding_that_fails_says_which_ids_have_rows(bag):
    class Bags(Tagger):
        def forward(self, words, tags):
            sums = nn.functional.embedding_bag(tags, self.tags.weight, mode="sum")
            return self.head(self.rnn(self.words(words))[0][:, -1]) + sums[:, :2]

    tags = torch.tensor([[4, 0, 5]], device="cpu")  # a row of the words' embedding
    with pytest.raises(UsageError, match=r"the id 5 at \(0, 2\); expected ids from 0 to 4"):
        unrolled.explain((Bags if bag else Tagger)(), WORDS, tags)


def test_integers_that_no_embedding_reads_are_not_blamed():
    class Timed(Tagger):
        def forward(self, words, tags, times):
            return super().forward(words, tags) + 0 * times.sum()

    times = torch.tensor([[1_700_000_000]], device="cpu")
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        unrolled.explain(Timed(longest=3), WORDS, TAGS, times)
    with pytest.raises(UsageError, match=r"the id 20 at \(0, 1\)"):
        unrolled.explain(Timed(), WORDS.where(WORDS != 19, 20), TAGS, times)


def test_ids_that_have_rows_are_not_named_where_another_index_fails():
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        unrolled.explain(Tagger(longest=3), WORDS, TAGS)
    assert abs(unrolled.explain(Tagger(), WORDS, TAGS).ledger.remainder) < 1e-5


@pytest.mark.parametrize("entry", [unrolled.explain, unrolled.account])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16, torch.bool])
def test_ids_of_a_type_that_no_embedding_reads_are_named(entry, dtype):
    with pytest.raises(UsageError, match=rf"by ids of {dtype}; expected torch.int64: pass ids.long\(\)"):
        entry(Tagger(), WORDS.to(dtype), TAGS)


@pytest.mark.parametrize("entry", [unrolled.explain, unrolled.account])
def test_ids_of_such_a_type_that_the_model_makes_are_its_own_to_convert(entry):
    class Halves(Tagger):
        def forward(self, words, tags):
            return super().forward(words / 2, tags)

    with pytest.raises(UsageError, match=r"by ids of torch.float32; .*: the model makes these ids, so call .long\(\)"):
        entry(Halves(), WORDS, TAGS)


class Reads(nn.Module):
    """Looks up ids, and reads their vectors by a network or by a cell in a loop."""

    def __init__(self, rnn):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(7, 4), rnn(4, 5), nn.Linear(5, 3)

    def forward(self, ids):
        vectors = self.embed(ids)
        if isinstance(self.rnn, nn.GRU):
            return self.head(self.rnn(vectors)[0][-1])
        state = None
        for each in vectors.unbind(0):
            state = self.rnn(each, state)
        return self.head(state)


ONE_HOT = nn.functional.one_hot(torch.tensor([[1, 2], [3, 4], [0, 6]], device="cpu"), 7)


@pytest.mark.parametrize("entry", [unrolled.explain_batch, unrolled.account, unrolled.check])
@pytest.mark.parametrize("rnn", [nn.GRU, nn.GRUCell])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32, torch.bool])
def test_one_hot_numbers_in_the_place_of_ids_are_told_to_become_ids(entry, rnn, dtype):
    model, given = Reads(rnn), ONE_HOT.to(dtype)
    with pytest.raises(UsageError, match=rf"on one-hot numbers of {dtype} and shape \(3, 2, 7\): .*argmax") as told:
        entry(model, given)
    assert "\n" not in str(told.value)
    assert entry(model, ONE_HOT.argmax(-1)) is not None  # the remedy


@pytest.mark.parametrize("entry", [unrolled.explain_batch, unrolled.account])
def test_ids_and_one_hot_numbers_that_no_embedding_reads_are_not_called_one_hot_numbers(entry):
    for wrong in (ONE_HOT + 1, ONE_HOT.roll(1, 0) + ONE_HOT):  # no one-hot numbers
        with pytest.raises((ValueError, UsageError)) as told:
            entry(Reads(nn.GRU), wrong.clamp_max(6))
        assert "one-hot" not in str(told.value)
    with pytest.raises((ValueError, RuntimeError)) as told:
        entry(nn.Sequential(nn.Linear(6, 4), Last()), ONE_HOT.float())
    assert "one-hot" not in str(told.value)
    with pytest.raises(RuntimeError, match="size of tensor a") as told:  # a mask beside ids
        entry(Masked(nn.GRU), ONE_HOT.argmax(-1), ONE_HOT)
    assert not isinstance(told.value, UsageError)


class Masked(Reads):
    def forward(self, ids, mask):
        return super().forward(ids) + mask.sum((0, 1))


class Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 3)

    def forward(self, x):
        return self.rnn(x)[0][-1]
