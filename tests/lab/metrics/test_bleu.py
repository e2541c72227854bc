from __future__ import annotations

import math
import random
import sys
from collections import Counter

import pytest

from unrolled.errors import ShapeError, UsageError
from unrolled.lab.metrics.bleu import BLEU_SIGNATURE, bleu


def by_hand(said, right) -> float:
    """The formula, for texts in which all four orders match somewhere."""
    product = 0.0
    for n in range(1, 5):
        matched = total = 0
        for ours, theirs in zip(said, right, strict=True):
            have = Counter(tuple(ours[i : i + n]) for i in range(len(ours) - n + 1))
            want = Counter(tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1))
            matched += sum((have & want).values())
            total += sum(have.values())
        product += math.log(matched / total) / 4
    c, r = sum(map(len, said)), sum(map(len, right))
    return 100 * min(1.0, math.exp(1 - r / c)) * math.exp(product)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_papinenis_formula(seed):
    draw = random.Random(seed)
    right = [[draw.choice("abcdef") for _ in range(draw.randint(5, 12))] for _ in range(30)]
    said = [[word if draw.random() < 0.8 else "x" for word in text][: draw.randint(5, 12)] for text in right]
    assert bleu(said, right) == pytest.approx(by_hand(said, right))
    assert bleu(right, right) == pytest.approx(100)
    assert bleu([["x"] * len(text) for text in right], right) < 1


def test_tokens_are_taken_as_they_are():
    """Every tokeniser of sacrebleu would split these tokens and find more matches; case matters too."""
    assert bleu([["a-b", "(c)", "d.", "e"]], [["a", "-", "b", "c"]]) == 0
    assert bleu([["A", "b", "c", "d"]], [["a", "b", "c", "d"]]) < 100


def test_words_may_be_numbers():
    said, right = [[5, 1, 7, 8, 9]], [[5, 1, 7, 8, 3]]
    names = {1: "one", 3: "three", 5: "five", 7: "seven", 8: "eight", 9: "nine"}
    spelled = ([[names[n] for n in text] for text in texts] for texts in (said, right))
    assert bleu(said, right) == pytest.approx(bleu(*spelled))


def test_a_translation_may_be_empty():
    assert bleu([[], ["a", "b", "c", "d"]], [["x"], ["a", "b", "c", "d"]]) == pytest.approx(100 * math.exp(1 - 5 / 4))


def test_the_signature_is_sacrebleus_own():
    from sacrebleu.metrics import BLEU

    metric = BLEU(tokenize="none")
    metric.corpus_score(["a"], [["a"]])
    assert str(metric.get_signature()) == BLEU_SIGNATURE


def test_invalid_references():
    with pytest.raises(ShapeError, match="there are 2 translations and 1 references"):
        bleu([["a"], ["b"]], [["a"]])
    with pytest.raises(ShapeError, match="0 translations"):
        bleu([], [])


def test_without_sacrebleu_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(UsageError, match=r"pip install 'unrolled\[tasks\]'"):
        bleu([["a"]], [["a"]])
