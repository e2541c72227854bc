"""A text's first lines, and lines cut short."""

from __future__ import annotations

from unrolled.lab.data.corpus import Characters
from unrolled.lab.papers.framework.corpora import cut_lines, first_lines
from unrolled.lab.papers.framework.synthetic_corpora import characters, words


def test_the_first_lines_are_kept_and_can_be_read_again():
    whole = words((30, 10, 10))
    part = first_lines(whole, 12, 3)
    assert [*part.train] == [*whole.train][:12]
    assert [*part.train] == [*part.train]
    assert [*part.dev] == [*whole.dev][:3]
    assert [*part.test] == [*whole.test]
    assert (part.name, part.unit) == (whole.name, "word")


def test_more_lines_than_there_are_is_all_of_them():
    whole = words((30, 10, 10))
    assert [*first_lines(whole, 99).train] == [*first_lines(whole, None).train] == [*whole.train]


def test_training_lines_alone_are_cut_and_a_short_one_keeps_its_end():
    whole = characters((40, 10, 10))
    cut = cut_lines(whole, 30)
    assert isinstance(cut, Characters)
    before, after = [*whole.train], [*cut.train]
    for line, rest in zip(before, after, strict=True):
        assert tuple(rest) == tuple(line)[:30]
        assert (rest[-1] == "\n") == (len(line) <= 30)
    assert {len(line) <= 30 for line in before} == {True, False}
    assert [*cut.dev] == [*whole.dev]
    assert [*cut.test] == [*whole.test]
    assert [*cut_lines(whole, None).train] == before
