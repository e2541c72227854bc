"""Labelled phrases: which count, and what a grammar says of them."""

from __future__ import annotations

import pytest
import torch

from unrolled.lab.data.corpus import Example
from unrolled.lab.data.datasets.sst import parse_tree
from unrolled.lab.papers.analyses.attribution_methods.labelled_phrases import LabelledPhrases, negation_trees

TREES = [
    parse_tree("(3 (2 a) (4 (3 (2 b) (1 c)) (0 d)))"),
    parse_tree("(1 (2 e) (1 f))"),
    parse_tree("(4 (0 (1 (2 g) (2 h))) (2 i))"),  # one span with two nodes
]


def test_phrases_of_two_words_or_more_that_are_not_the_sentence():
    phrases = LabelledPhrases.from_trees(TREES)
    assert phrases.places.tolist() == [[0, 1, 3], [0, 1, 4], [2, 0, 2]]
    assert phrases.labels.tolist() == [1.0, 2.0, -2.0]
    assert phrases.texts == (("b", "c"), ("b", "c", "d"), ("g", "h"))
    assert phrases.lengths.tolist() == [2, 3, 2]
    assert phrases.of_length(3, None).tolist() == [False, True, False]
    assert phrases.of_length(2, 2).tolist() == [True, False, True]


def test_the_first_are_those_of_the_first_sentence_that_has_any():
    first = LabelledPhrases.from_trees([TREES[1], *TREES]).first()
    assert first.texts == (("b", "c"), ("b", "c", "d"))
    assert len(first.sentences) == 2
    assert first.labels.tolist() == [1.0, 2.0]


def test_every_phrase_ends_where_its_prefix_ends():
    ending_together = parse_tree("(2 (2 a) (2 (2 (2 b) (2 (2 c) (2 d))) (2 e)))")
    phrases = LabelledPhrases.from_trees([*TREES, ending_together])
    texts, which = phrases.prefixes()
    assert len(texts) < len(phrases)  # "b c d" and "c d" end at one place
    for (sentence, _, stop), prefix in zip(phrases.places.tolist(), which.tolist(), strict=True):
        assert texts[prefix] == phrases.sentences[sentence][:stop]


def test_each_not_turns_the_rest_around():
    (tree,) = negation_trees([Example(("the", "film", "was", "not", "not", "awful"), 0)])
    said = {tree.tokens[node.start : node.stop]: node.label for node in tree.nodes}
    assert said[("awful",)] == said[("not", "not", "awful")] == 0
    assert said[("not", "awful")] == 4
    assert said[("was", "not", "not", "awful")] == tree.label == 0
    assert said[("the", "film")] == 2


def test_the_agreement_of_some_phrases_is_that_of_these_alone():
    labels = torch.tensor([2.0, -2.0, 1.0, 0.0])
    phrases = LabelledPhrases((("a",) * 5,) * 4, torch.tensor([[n, 0, 2] for n in range(4)]), labels.double())
    scores = torch.tensor([1.0, -1.0, 0.0, 9.0])
    three = torch.tensor([True, True, True, False])
    assert phrases.agreement(scores, which=three, draws=1).value > 0.9
    assert phrases.agreement(scores, draws=1).value < 0.5
    assert phrases.agreement(scores, which=three, ranked=True, draws=1).value == pytest.approx(1)
