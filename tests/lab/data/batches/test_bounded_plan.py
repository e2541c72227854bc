"""A batch has at most as many tokens as were asked for, padding counted, and at most as many examples."""

from __future__ import annotations

import pytest
import torch

from unrolled.errors import DataError
from unrolled.lab.data.batches.base import EncodedTexts, bounded_plan
from unrolled.lab.data.batches.text_pairs import EncodedPairs
from unrolled.lab.data.vocabulary import Vocabulary


def encoded(*lengths):
    texts = [["word"] * length for length in lengths]
    return EncodedTexts.encode(texts, [0] * len(texts), Vocabulary.from_texts(texts))


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize(("size", "most"), [(8, 300), (64, 1000), (3, 250), (64, 250)])
def test_no_batch_has_more_tokens_or_examples_than_asked_for_and_each_example_is_in_one(seed, size, most):
    lengths = torch.randint(1, 250, (200,), generator=torch.Generator().manual_seed(7)).tolist()
    split = encoded(*lengths)
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    plan = bounded_plan(split, size, most, generator)
    assert sorted(torch.cat(list(plan)).tolist()) == list(range(200))
    for which in plan:
        assert len(which) <= size
        assert len(which) * int(split.lengths[which].max()) <= most
    # the control: without a bound there are larger ones
    assert any(len(which) * int(split.lengths[which].max()) > most for which in split.plan(size))


def test_a_plan_within_the_bound_stays_as_it_is():
    split = encoded(*range(1, 60))
    free = split.plan(8, torch.Generator().manual_seed(3))
    bounded = bounded_plan(split, 8, 8 * 60, torch.Generator().manual_seed(3))
    assert [which.tolist() for which in bounded] == [which.tolist() for which in free]


def test_one_long_text_is_a_batch_of_its_own():
    split = encoded(*[10] * 63, 50_000)
    assert sorted(len(which) for which in bounded_plan(split, 64, 2**18)) == [1, 63]


def test_a_text_longer_than_a_batch_is_refused_with_what_helps():
    with pytest.raises(DataError, match=r"example 2 of 3 has 900 tokens, more than the 800 of a batch; raise --max-to"):
        bounded_plan(encoded(3, 900, 4), 64, 800)


def test_pairs_count_their_longer_sentence():
    pairs = EncodedPairs(*(tuple(torch.ones(length, dtype=torch.long) for length in row) for row in ((2, 90), (80, 3))))
    assert [len(which) for which in bounded_plan(pairs, 2, 100)] == [1, 1]
    equal = EncodedPairs(pairs.sources[:1] * 2, pairs.targets[:1] * 2)
    assert [len(which) for which in bounded_plan(equal, 2, 160)] == [2]
    assert [len(which) for which in bounded_plan(equal, 2, 159)] == [1, 1]
