from __future__ import annotations

from unrolled.lab.data.corpus import Example
from unrolled.lab.papers.sequence_level_features.ngrams import AssociatedNgrams, associated_ngrams


def texts(*lines):
    return [Example(tuple(line[1:].split(" ")), int(line[0] == "+")) for line in lines]


TEXTS = texts("+so very good", "+Very good", "+not bad", "-very bad", "-so bad", "-quite bad", "+good", "-not good")


def test_what_stands_at_the_end_of_one_label_nearly_always_is_found():
    assert associated_ngrams(TEXTS, 1, least=2, share=0.7, most=9) == AssociatedNgrams(("good",), ("bad",))
    assert associated_ngrams(TEXTS, 1, least=2, share=0.8, most=9) == AssociatedNgrams((), ())
    assert associated_ngrams(TEXTS, 2, least=2, share=0.9, most=9) == AssociatedNgrams(("very good",), ())


def test_the_rare_and_the_surplus_are_left_out_and_a_text_too_short_has_none():
    assert associated_ngrams(TEXTS, 1, least=5, share=0.6, most=9) == AssociatedNgrams((), ())
    assert associated_ngrams(TEXTS, 2, least=1, share=0.9, most=1) == AssociatedNgrams(("very good",), ("not good",))
    assert associated_ngrams(TEXTS, 3, least=1, share=0.9, most=9) == AssociatedNgrams(("so very good",), ())


def test_a_word_with_a_space_in_it_is_not_taken_for_two():
    odd = [Example(("just", "2\xa01/2"), 0)] * 3
    assert associated_ngrams(odd, 2, least=1, share=0.9, most=9) == AssociatedNgrams((), ())
    assert associated_ngrams(texts("-just 2"), 2, least=1, share=0.9, most=9).negative == ("just 2",)
