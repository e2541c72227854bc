"""Spans and the tags that spell them: every scheme says the same spans, and each refuses what it cannot say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.errors import DataError
from unrolled.lab.data.spans import (
    SCHEMES,
    Span,
    are_span_tags,
    convert_tags,
    detect_scheme,
    find_invalid_tag,
    spans_to_tags,
    tags_to_spans,
)

KINDS = ("PER", "LOC", "B-X", "I")  # a kind may look like a tag itself


@st.composite
def sentences(draw):
    """A length and spans in it, some touching."""
    found, place = [], draw(st.integers(0, 2))
    for _ in range(draw(st.integers(0, 5))):
        end = place + draw(st.integers(1, 4))
        found.append(Span(place, end, draw(st.sampled_from(KINDS))))
        place = end + draw(st.integers(0, 2))
    return place, tuple(found)


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(deadline=None)  # a slow machine proves nothing
@given(sentences())
def test_tags_say_the_spans_they_were_made_of(scheme, sentence):
    length, found = sentence
    spelled = spans_to_tags(found, length, scheme)
    assert len(spelled) == length
    assert find_invalid_tag(spelled, scheme) is None
    assert tags_to_spans(spelled, scheme) == found


@settings(deadline=None)  # a slow machine proves nothing
@given(sentences(), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_a_conversion_there_and_back_changes_nothing(sentence, one, other):
    spelled = spans_to_tags(sentence[1], sentence[0], one)
    assert convert_tags(convert_tags(spelled, one, other), other, one) == spelled
    assert tags_to_spans(convert_tags(spelled, one, other), other) == sentence[1]


@settings(deadline=None)  # a slow machine proves nothing
@given(st.lists(st.sampled_from(["O", "B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B"]), max_size=6))
def test_what_is_refused_is_exactly_what_no_spans_spell(sentence):
    """Brute force: a sentence of tags is allowed when some spans, of all there are, are written so."""
    for scheme in SCHEMES:
        allowed = tuple(sentence) in _writable(len(sentence), scheme)
        assert (find_invalid_tag(sentence, scheme) is None) is allowed


_CACHE: dict[tuple[int, str], set[tuple[str, ...]]] = {}


def _writable(length, scheme):
    if (length, scheme) not in _CACHE:
        _CACHE[length, scheme] = {spans_to_tags(found, length, scheme) for found in _all_spans(0, length)}
    return _CACHE[length, scheme]


def _all_spans(begin, length):
    if begin == length:
        return [()]
    found = list(_all_spans(begin + 1, length))
    for end in range(begin + 1, length + 1):
        for kind in "AB":
            found += [(Span(begin, end, kind), *rest) for rest in _all_spans(end, length)]
    return found


@pytest.mark.parametrize(
    ("scheme", "spelled"),
    [
        ("IOB1", ("I-PER", "I-PER", "B-PER", "O", "I-LOC", "I-PER")),
        ("BIO2", ("B-PER", "I-PER", "B-PER", "O", "B-LOC", "B-PER")),
        ("IOBES", ("B-PER", "E-PER", "S-PER", "O", "S-LOC", "S-PER")),
    ],
)
def test_one_sentence_written_by_hand_in_all_schemes(scheme, spelled):
    found = (Span(0, 2, "PER"), Span(2, 3, "PER"), Span(4, 5, "LOC"), Span(5, 6, "PER"))
    assert spans_to_tags(found, 6, scheme) == spelled
    assert tags_to_spans(spelled, scheme) == found


@pytest.mark.parametrize(
    ("corpus", "scheme"),
    [
        ([["O", "I-PER"], ["I-LOC", "B-LOC"]], "IOB1"),
        ([["O", "B-PER"], ["B-LOC", "I-LOC"]], "BIO2"),
        ([["O", "B-PER", "E-PER"]], "IOBES"),
        ([["O", "S-PER"]], "IOBES"),
        ([["O"]], "BIO2"),
        ([["B-PER"], ["B-PER"], ["O", "I-PER"]], "BIO2"),  # one mistake, not two
        ([["I-PER"], ["I-PER"], ["O", "B-PER"]], "IOB1"),
        ([["O", "EVENT", "B-PER"]], "BIO2"),
    ],
)
def test_a_scheme_is_recognised_by_the_whole_corpus(corpus, scheme):
    assert detect_scheme(corpus) == scheme


@pytest.mark.parametrize(
    ("found", "spelled"),
    [
        (("O", "B-PER"), True),
        (("B-NP", "I-NP"), True),
        (("O", "O"), False),
        (("NN", "VB", "O"), False),
        (("NN", "B-2"), False),
        (("O", "B-PER", "PRE"), True),  # so that the last one is found to be a mistake
        ((), False),
    ],
)
def test_tags_spell_spans_or_stand_for_themselves(found, spelled):
    assert are_span_tags(found) is spelled


@pytest.mark.parametrize(
    ("scheme", "sentence", "message"),
    [
        ("BIO2", ["O", "I-PER"], "tag 2: expected B-PER after O, found 'I-PER'; in BIO2 every span begins with B-"),
        ("BIO2", ["B-PER", "I-LOC"], "tag 2: expected B-LOC after B-PER, found 'I-LOC'"),
        ("BIO2", ["S-PER"], "tag 1: expected O, or B-, I- and a type, found 'S-PER'; the scheme is BIO2"),
        ("BIO2", ["PER"], "tag 1: expected O, or B-, I- and a type, found 'PER'"),
        ("IOB1", ["O", "B-PER"], "tag 2: expected I-PER after O, found 'B-PER'; in IOB1 a span begins with B- only"),
        ("IOBES", ["B-PER"], "tag 1: expected S-PER at a sentence's end, found 'B-PER'; in IOBES a span ends with E-"),
        ("IOBES", ["B-PER", "I-PER"], "tag 2: expected E-PER at a sentence's end, found 'I-PER'"),
        ("IOBES", ["B-PER", "O"], "tag 2: expected I-PER or E-PER after B-PER, found 'O'"),
        ("IOBES", ["O", "E-PER"], "tag 2: expected B-PER or S-PER after O, found 'E-PER'"),
        ("IOBES", ["B-"], "tag 1: expected O, or B-, I-, E-, S- and a type, found 'B-'"),
    ],
)
def test_a_tag_that_cannot_be_where_it_is_is_named(scheme, sentence, message):
    with pytest.raises(DataError) as caught:
        tags_to_spans(sentence, scheme)
    assert str(caught.value).startswith(message)
