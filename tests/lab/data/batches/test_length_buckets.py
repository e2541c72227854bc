from __future__ import annotations

import pytest
import torch

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.batches.base import EncodedTexts, length_buckets
from unrolled.lab.data.vocabulary import PADDING, Vocabulary


def corpus(lengths):
    """Texts of these lengths; every word says which text it is from, and so does the label."""
    texts = [[f"w{i}"] * n for i, n in enumerate(lengths)]
    vocabulary = Vocabulary.from_texts(texts)
    return vocabulary, EncodedTexts.encode(texts, range(len(texts)), vocabulary)


def random_lengths(count, seed=0):
    return torch.randint(1, 30, (count,), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("size", [1, 7, 64, 5000])
@pytest.mark.parametrize("shuffled", [True, False])
def test_every_text_is_in_exactly_one_batch(size, shuffled):
    lengths = random_lengths(1000)
    generator = torch.Generator().manual_seed(3) if shuffled else None
    buckets = length_buckets(lengths, size, generator)
    assert sorted(torch.cat(buckets).tolist()) == list(range(1000))
    assert max(map(len, buckets)) <= size


def test_batches_are_of_equal_length_where_there_are_texts_enough():
    lengths = random_lengths(3000)
    buckets = length_buckets(lengths, 20, torch.Generator().manual_seed(0))
    equal = sum(len(which) for which in buckets if len(lengths[which].unique()) == 1)
    assert equal > 0.8 * 3000
    shuffled = torch.randperm(3000, generator=torch.Generator().manual_seed(0)).split(20)
    assert not any(len(lengths[which].unique()) == 1 for which in shuffled)  # chance alone does not do it


def test_texts_of_all_different_lengths_still_share_batches():
    buckets = length_buckets(torch.arange(1, 101), 10, None)
    assert len(buckets) <= 20


def test_the_seed_decides_the_order_and_only_the_order():
    lengths = random_lengths(500)

    def draw(seed):
        return [which.tolist() for which in length_buckets(lengths, 16, torch.Generator().manual_seed(seed))]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_a_generator_goes_on_where_it_stopped():
    lengths, generator = random_lengths(500), torch.Generator().manual_seed(1)
    first, second = (length_buckets(lengths, 16, generator) for _ in range(2))
    assert [which.tolist() for which in first] != [which.tolist() for which in second]


def test_batches_hold_each_text_and_its_label_and_padding_elsewhere():
    vocabulary, texts = corpus([3, 1, 2, 3, 5])
    for which in texts.plan(2, torch.Generator().manual_seed(0)):
        batch = texts.select(which)
        assert batch.tokens.dtype == batch.lengths.dtype == batch.labels.dtype == torch.int64
        assert batch.tokens.shape == (len(batch.labels), int(batch.lengths.max()))
        for row, length, label in zip(batch.tokens, batch.lengths, batch.labels, strict=True):
            assert vocabulary.decode(row[:length].tolist()) == [f"w{label}"] * int(length)
            assert (row[length:] == PADDING).all()


def test_impossible_batches_and_texts_are_refused():
    with pytest.raises(UsageError, match="the batch size is 0; expected 1 or more"):
        length_buckets(torch.tensor([1, 2]), 0)
    with pytest.raises(DataError, match="no examples; expected at least one"):
        EncodedTexts.encode([], [], Vocabulary.from_texts([]))
    with pytest.raises(DataError, match="example 2 of 2 is empty"):
        EncodedTexts.encode([("a",), ()], [0, 1], Vocabulary.from_texts([]))


def test_ratings_stay_numbers_with_a_fraction():
    texts = EncodedTexts.encode([("a",), ("b",)], [0.5, -1.0], Vocabulary.from_texts([("a", "b")]))
    assert texts.labels.dtype == torch.float32
    assert texts.select(torch.tensor([1, 0])).labels.tolist() == [-1.0, 0.5]


@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_the_shares_of_a_batch_are_the_batch(world):
    _, texts = corpus([3, 3, 3, 3, 3])
    batch = texts.select(torch.arange(5))
    shares = [batch.share(rank, world) for rank in range(world)]
    assert sorted(torch.cat([share.labels for share in shares]).tolist()) == [0, 1, 2, 3, 4]
    assert sum(map(len, shares)) == len(batch) == 5
    assert all(share.tokens.shape == (len(share), 3) for share in shares)
    assert batch.to(torch.device("meta")).tokens.is_meta
