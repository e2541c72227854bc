from __future__ import annotations

import itertools

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.spans import TagGrammar, find_invalid_tag, iobes_tags


def allows(grammar, sequence):
    return (
        grammar.first[sequence[0]]
        and all(grammar.after[one][other] for one, other in itertools.pairwise(sequence))
        and grammar.last[sequence[-1]]
    )


def test_it_allows_what_spells_whole_spans_and_nothing_else():
    tags = iobes_tags(["S-A", "S-B"])
    grammar, free = TagGrammar.iobes(tags), TagGrammar.free(len(tags))
    legal = 0
    for length in (1, 2, 3):
        for sequence in itertools.product(range(len(tags)), repeat=length):
            whole = find_invalid_tag([tags[tag] for tag in sequence], "IOBES") is None
            assert allows(grammar, sequence) == whole
            assert allows(free, sequence)
            legal += whole
    assert legal == 3 + (9 + 2) + (27 + 2 * 2 * 3 + 2)  # O or S anywhere, spans of two tokens, spans of three


def test_a_type_that_is_met_in_one_form_may_be_met_in_all():
    assert iobes_tags(["S-PER", "O", "B-LOC", "E-LOC"]) == (
        *("O", "B-LOC", "I-LOC", "E-LOC", "S-LOC"),
        *("B-PER", "I-PER", "E-PER", "S-PER"),
    )
    assert iobes_tags([]) == ("O",)


@pytest.mark.parametrize("tag", ["NN", "X-PER", "B-", "B", ""])
def test_what_is_no_tag_of_the_scheme(tag):
    with pytest.raises(DataError, match="is not a tag of IOBES"):
        TagGrammar.iobes(["O", tag])
