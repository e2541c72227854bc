"""N-gram language models: sums to 1, cases computed by hand, and nltk's own Kneser-Ney."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.datasets.ptb import PennTreebank
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.models.ngram_lm import NGramLanguageModel

TEXT = [
    ["the", "dog", "sees", "the", "cat", "<eos>"],
    ["the", "cat", "sees", "a", "dog", "and", "the", "dog", "runs", "<eos>"],
    ["a", "cat", "runs", "and", "a", "dog", "runs", "<eos>"],
]
OTHER = [["the", "cat", "runs", "<eos>"], ["a", "dog", "sees", "a", "cat", "and", "runs", "<eos>"]]
WORDS = sorted({word for line in TEXT for word in line})


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("discount", [0.1, 0.75, 1.0])
def test_kneser_ney_sums_to_one_after_any_context(order, discount):
    model = NGramLanguageModel(order, discount=discount).fit(TEXT)
    contexts = [
        (),
        ("the",),
        ("sees", "the"),
        ("runs", "<eos>"),
        ("runs", "runs"),
        ("never", "seen"),
        ("dog", "and", "the"),
    ]
    for context in contexts:
        assert sum(model.probability(word, context) for word in WORDS) == pytest.approx(1.0, abs=1e-12)


def long_text():
    """A text in which k-grams occur once, twice, three and four times, for each k."""
    draw = random.Random(0)
    return [[draw.choice("aaaaabbbccd") + draw.choice("xy") for _ in range(9)] + ["<eos>"] for _ in range(40)]


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("text", [TEXT, long_text()], ids=["short", "long"])
def test_modified_kneser_ney_sums_to_one_after_any_context(order, text):
    model = NGramLanguageModel(order, "modified kneser-ney").fit(text)
    words = sorted({word for line in text for word in line})
    for context in ((), ("ax",), ("by", "<eos>"), ("ay", "never", "ax"), ("the", "dog"), ("dog", "and", "the")):
        assert sum(model.probability(word, context) for word in words) == pytest.approx(1.0, abs=1e-12)


def by_definition(text, order, word, context):
    """Modified Kneser-Ney of Chen and Goodman, each count by a pass over the text."""
    running = ["<pad>"] * (order - 1) + [each for line in text for each in line]
    ends = range(order, len(running) + 1)

    def counts(length):
        if length == order:
            return Counter(tuple(running[end - length : end]) for end in ends)
        return Counter(gram[1:] for gram in {tuple(running[end - length - 1 : end]) for end in ends})

    def probability(gram):
        kinds = counts(len(gram))
        if len(gram) == 1:
            return kinds[gram] / kinds.total()
        times = Counter(kinds.values())
        share = times[1] / (times[1] + 2 * times[2])
        off = [0, *(k - (k + 1) * share * times[k + 1] / times[k] for k in (1, 2, 3))]
        after = {kind: count for kind, count in kinds.items() if kind[:-1] == gram[:-1]}
        if not after:
            return probability(gram[1:])
        taken = sum(off[min(count, 3)] for count in after.values())
        own = after.get(gram, 0)
        return (own - off[min(own, 3)] + taken * probability(gram[1:])) / sum(after.values())

    return probability((*context, word))


@pytest.mark.parametrize("order", [2, 3])
def test_modified_kneser_ney_is_that_of_chen_and_goodman(order):
    text = long_text()
    model = NGramLanguageModel(order, "modified kneser-ney").fit(text)
    for context in (("ax", "ay"), ("dx", "by"), ("cy", "<eos>"), ("dy", "dy")):
        for word in ("ax", "dy", "<eos>"):
            expected = by_definition(text, order, word, context[1 - order :])
            assert model.probability(word, context) == pytest.approx(expected, abs=1e-12)
    plain = NGramLanguageModel(order).fit(text)
    assert abs(plain.probability("ax", ("ax", "ay")) - model.probability("ax", ("ax", "ay"))) > 1e-4


def test_a_text_too_short_for_estimates_has_the_given_discount():
    given, plain = (NGramLanguageModel(3, kind, 0.6).fit(TEXT) for kind in ("modified kneser-ney", "kneser-ney"))
    assert given.perplexity(OTHER) == pytest.approx(plain.perplexity(OTHER), abs=1e-12)


@pytest.mark.parametrize("order", [2, 3])
def test_maximum_likelihood_sums_to_one_after_contexts_it_saw(order):
    model = NGramLanguageModel(order, "none").fit(TEXT)
    for context in (("the", "cat"), ("a", "dog"), ("runs", "<eos>")):
        assert sum(model.probability(word, context) for word in WORDS) == pytest.approx(1.0, abs=1e-12)
    assert sum(model.probability(word, ("runs", "never")) for word in WORDS) == 0


def test_bigrams_by_hand():
    model = NGramLanguageModel(2, "none").fit([["a", "b", "<eos>"], ["a", "c", "<eos>"]])
    assert model.probability("b", ["a"]) == 1 / 2
    assert model.probability("a", ["<eos>"]) == 1.0
    # a after nothing 1, b after a 1/2, <eos> after b 1; then a after <eos> 1, b after a 1/2, <eos> 1
    assert model.perplexity([["a", "b", "<eos>"], ["a", "b", "<eos>"]]) == pytest.approx(4 ** (1 / 6))
    assert model.perplexity([["b", "<eos>"]]) == math.inf


def test_kneser_ney_by_hand():
    model = NGramLanguageModel(2, discount=0.5).fit([["a", "b", "a", "b", "a", "c"]])
    # bigrams: nothing a, a b (twice), b a (twice), a c: four kinds; a is preceded by two, b and c by one each
    expected = (2 - 0.5) / 3 + (0.5 * 2 / 3) * (1 / 4)
    assert model.probability("b", ["a"]) == pytest.approx(expected)
    assert model.probability("a", ["c"]) == pytest.approx(2 / 4)
    assert model.probability("a", []) == pytest.approx(0.5 + 0.5 * 2 / 4)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_it_is_nltks_kneser_ney(order):
    from nltk.lm import KneserNeyInterpolated

    theirs = KneserNeyInterpolated(order, discount=0.6)
    running = ["<pad>"] * (order - 1) + [word for line in TEXT for word in line]
    ends = range(order, len(running) + 1)
    theirs.fit([[tuple(running[end - k : end]) for k in range(1, order + 1)] for end in ends], ["<pad>", *WORDS])
    ours = NGramLanguageModel(order, discount=0.6).fit(TEXT)
    for context in (("dog", "and", "the"), ("cat", "sees", "a"), ("the", "runs", "cat")):
        for word in WORDS:
            expected = theirs.score(word, context[1 - order :])
            assert ours.probability(word, context) == pytest.approx(expected, abs=1e-14)
    test = ["<pad>"] * (order - 1) + [word for line in OTHER for word in line]
    grams = [tuple(test[end - order : end]) for end in range(order, len(test) + 1)]
    assert ours.perplexity(OTHER) == pytest.approx(theirs.perplexity(grams))
    assert ours.perplexity(OTHER) != pytest.approx(
        NGramLanguageModel(order, discount=0.2).fit(TEXT).perplexity(OTHER), rel=1e-3
    )


def test_longer_contexts_help_where_they_matter():
    text = [["a", "x", "b", "y", "c", "x", "d", "z"] * 20]
    two, three = (NGramLanguageModel(order).fit(text).perplexity(text) for order in (2, 3))
    assert three < two


def test_words_that_are_not_known_are_unk():
    known = Vocabulary.from_texts(TEXT, min_count=3)
    model = NGramLanguageModel(2).fit(TEXT, known)
    assert (
        model.probability("sees", ["the"]) == model.probability("<unk>", ["the"]) == model.probability("zebra", ["the"])
    )
    assert model.perplexity([["zebra", "runs"]]) < math.inf
    assert NGramLanguageModel(2).fit(TEXT).perplexity([["zebra", "runs"]]) == math.inf


def test_invalid_arguments():
    with pytest.raises(UsageError, match="order is 1; expected 2 or more"):
        NGramLanguageModel(1)
    with pytest.raises(UsageError, match=r"discount is 1.5; expected 0 to 1"):
        NGramLanguageModel(2, discount=1.5)
    with pytest.raises(DataError, match="no words; expected at least one"):
        NGramLanguageModel(2).fit([[]])
    with pytest.raises(DataError, match="no words; expected at least one"):
        NGramLanguageModel(2).fit(TEXT).perplexity([])
    for call in (lambda: NGramLanguageModel(2).perplexity(TEXT), lambda: NGramLanguageModel(2).probability("a", [])):
        with pytest.raises(UsageError, match=r"call fit\(text\) first"):
            call()


def test_more_n_grams_than_nltk_takes(monkeypatch):
    monkeypatch.setattr("nltk.lm.counter.MAX_NGRAMS", 10)
    with pytest.raises(DataError, match="more different n-grams than nltk can count; use a shorter text, or an order"):
        NGramLanguageModel(2).fit(TEXT)


@pytest.mark.data
def test_the_penn_treebank(data_folder):
    corpus = PennTreebank().read(data_folder)
    two, three = (NGramLanguageModel(order).fit(corpus.train).perplexity(corpus.test) for order in (2, 3))
    assert two == pytest.approx(186.47, abs=0.01)
    assert three == pytest.approx(154.34, abs=0.01)
    modified = NGramLanguageModel(3, "modified kneser-ney").fit(corpus.train)
    assert modified.perplexity(corpus.test) == pytest.approx(148.39, abs=0.01)
