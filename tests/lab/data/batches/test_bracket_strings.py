from __future__ import annotations

import pytest
import torch

from unrolled.errors import DataError
from unrolled.lab.data.batches.labelled_sequences import IGNORE_INDEX, EncodedBrackets, closing_targets
from unrolled.lab.data.datasets.dyck import DyckStrings


def rewritten(string, kinds):
    """What closes next and how far it is, by crossing out innermost pairs."""
    kind, distance = [IGNORE_INDEX] * len(string), [0] * len(string)
    places = list(range(len(string)))
    while places:
        pair = next(
            i
            for i in range(len(places) - 1)
            if string[places[i]] < kinds and string[places[i + 1]] == string[places[i]] + kinds
        )
        begin, end = places[pair], places[pair + 1]
        kind[end - 1], distance[end - 1] = string[begin], end - begin
        del places[pair : pair + 2]
    return kind, distance


def test_it_finds_what_crossing_out_pairs_finds():
    for string in DyckStrings(3, 4, symbols=(500, 1, 1)).read().train:
        assert closing_targets(string, 3, 4) == rewritten(string, 3)


@pytest.mark.parametrize(
    ("string", "message"),
    [
        ((0, 4), "bracket 2 is 4; expected 0 to 3"),
        ((0, -1), "bracket 2 is -1"),
        ((0, 0, 0, 2, 2, 2), "bracket 3 opens level 3; expected at most 2"),
        ((0, 3), "bracket 2 closes kind 1, but kind 0 was opened last"),
        ((0, 2, 2), "bracket 3 closes kind 0, but nothing is open"),
        ((1, 0, 2), "bracket 1 is never closed"),
    ],
)
def test_what_is_no_string_of_the_language(string, message):
    assert closing_targets((0, 1, 3, 2), 2, 2)
    with pytest.raises(DataError, match=message):
        closing_targets(string, 2, 2)
    with pytest.raises(DataError, match=f"string 2: {message}"):
        EncodedBrackets.encode([(0, 2), string], 2, 2)


def test_a_batch_asks_nothing_of_padding():
    batch = EncodedBrackets.encode([(0, 1, 3, 2), (1, 3)], 2, 2).select(torch.tensor([1, 0]))
    assert batch.brackets.tolist() == [[1, 3, 0, 0], [0, 1, 3, 2]]
    assert batch.closing.tolist() == [[1, IGNORE_INDEX, IGNORE_INDEX, IGNORE_INDEX], [IGNORE_INDEX, 1, 0, IGNORE_INDEX]]
    assert batch.distances.tolist() == [[1, 0, 0, 0], [0, 1, 3, 0]]
    assert batch.lengths.tolist() == [2, 4]
