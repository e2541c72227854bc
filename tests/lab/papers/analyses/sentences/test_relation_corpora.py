"""Relation corpora without directions and without markers."""

from __future__ import annotations

from unrolled.lab.data.tokenise import ENTITY_MARKERS
from unrolled.lab.papers.analyses.sentences.relation_corpora import without_directions, without_markers
from unrolled.lab.papers.framework.synthetic_corpora import relations


def test_a_relation_and_its_reverse_are_one_class():
    corpus = relations()
    merged = without_directions(corpus)
    assert merged.labels == ("Cause-Effect", "Component-Whole", "Other")
    for before, after in zip(corpus.train, merged.train, strict=True):
        assert corpus.labels[before.label].startswith(merged.labels[after.label])
        assert before.tokens == after.tokens


def test_without_markers_all_other_words_labels_and_examples_stay():
    corpus = relations()
    bare = without_markers(corpus)
    assert bare.labels == corpus.labels
    for before, after in zip((corpus.train, corpus.dev, corpus.test), (bare.train, bare.dev, bare.test), strict=True):
        assert [example.label for example in before] == [example.label for example in after]
        assert all(not set(example.tokens) & set(ENTITY_MARKERS) for example in after)
        for marked, unmarked in zip(before, after, strict=True):
            assert len(marked.tokens) == len(unmarked.tokens) + len(ENTITY_MARKERS)
            words = iter(marked.tokens)
            assert all(token in words for token in unmarked.tokens)  # in the same order
