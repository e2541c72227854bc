from __future__ import annotations

import lzma
from collections import Counter

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.datasets.sst import (
    Node,
    Sst2,
    Sst2Sentences,
    Sst5,
    Sst5Sentences,
    SstRegression,
    SstRegressionSentences,
    parse_tree,
    read_trees,
)

GOOD = "(3 (2 It) (4 (2 's) (4 good)))"
BAD = "(1 (2 It) (0 (2 's) (0 bad)))"
NEUTRAL = "(2 (2 A) (2 film))"


def test_a_tree_is_its_words_and_every_labelled_phrase():
    tree = parse_tree(GOOD)
    assert tree.tokens == ("It", "'s", "good")
    assert tree.nodes == (Node(0, 1, 2), Node(1, 2, 2), Node(2, 3, 4), Node(1, 3, 4), Node(0, 3, 3))
    assert tree.label == 3


def test_words_end_at_plain_spaces_only_and_escapes_are_undone():
    tree = parse_tree("(2 (2 (2 -LRB-) (2 2\u00a01\\/2)) (2 (2 -RRB-) (2 \\*\\*)))")
    assert tree.tokens == ("(", "2\u00a01/2", ")", "**")


def test_a_deep_tree_does_not_exhaust_the_stack():
    depth = 20_000
    tree = parse_tree("(2 " * depth + "word" + ")" * depth)
    assert len(tree.nodes) == depth


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("(3 (2 It) (4 good)", "expected 1 more '\\)' before the line's end"),
        ("(3 (2 It", "expected 2 more '\\)'"),
        ("(3 (2 It)) (2 more)", "expected the line to end after the tree, found '\\('"),
        ("(3 It))", "expected the line to end after the tree, found '\\)'"),
        ("(5 It)", "expected a label from 0 to 4 after '\\(', found '5'"),
        ("(It)", "expected a label from 0 to 4 after '\\(', found 'It'"),
        ("(", 'found "the line\'s end"'),
        ("(3 )", "expected a word or a tree after the label, found '\\)'"),
        ("3 It", "expected '\\(', found '3'"),
        ("", "expected a tree, found an empty line"),
    ],
)
def test_what_is_no_tree_is_refused_with_what_was_expected(line, message):
    with pytest.raises(DataError, match=message):
        parse_tree(line)


def test_an_error_names_the_file_and_the_line(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(f"{GOOD}\n{BAD}\n(7 No)\n")
    with pytest.raises(DataError, match=r"train\.txt:3: expected a label from 0 to 4"):
        read_trees(path)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sst").mkdir()
    (tmp_path / "sst" / "train.txt.xz").write_bytes(lzma.compress(f"{GOOD}\n{BAD}\n{NEUTRAL}\n".encode()))
    (tmp_path / "sst" / "dev.txt").write_text(f"{GOOD}\n{NEUTRAL}\n")
    (tmp_path / "sst" / "test.txt").write_text(f"{NEUTRAL}\n{BAD}\n")
    return tmp_path


def test_sst2_trains_on_all_phrases_that_are_not_neutral_and_measures_on_sentences(folder):
    dataset = Sst2().read(folder)
    phrases = [(" ".join(example.tokens), example.label) for example in dataset.train]
    assert phrases == [
        ("good", 1),
        ("'s good", 1),
        ("It 's good", 1),
        ("bad", 0),
        ("'s bad", 0),
        ("It 's bad", 0),
    ]
    assert [example.tokens for example in dataset.dev] == [("It", "'s", "good")]
    assert [example.label for example in dataset.test] == [0]
    assert dataset.labels == ("negative", "positive")


def test_sst5_keeps_everything(folder):
    dataset = Sst5().read(folder)
    assert Counter(example.label for example in dataset.train) == {2: 7, 4: 2, 3: 1, 0: 2, 1: 1}
    assert [example.label for example in dataset.dev] == [3, 2]
    assert len(dataset.labels) == 5


def test_the_regression_is_of_the_five_labels_from_minus_two_to_two(folder):
    dataset, classes = SstRegression().read(folder), Sst5().read(folder)
    for split in ("train", "dev", "test"):
        pairs = [(example.tokens, example.rating) for example in getattr(dataset, split)]
        assert pairs == [(example.tokens, example.label - 2) for example in getattr(classes, split)]
    assert {example.rating for example in dataset.train} == {-2, -1, 0, 1, 2}


@pytest.mark.parametrize(
    ("phrases", "sentences"),
    [(Sst2, Sst2Sentences), (Sst5, Sst5Sentences), (SstRegression, SstRegressionSentences)],
)
def test_without_phrases_whole_sentences_are_trained_on_and_the_rest_stays(folder, phrases, sentences):
    whole, parts = sentences().read(folder), phrases().read(folder)
    assert (whole.dev, whole.test) == (parts.dev, parts.test)
    lengths = [len(example.tokens) for example in whole.train]
    assert lengths == ([3, 3] if phrases is Sst2 else [3, 3, 2])
    assert set(whole.train) < set(parts.train)


@pytest.mark.data
def test_the_real_treebank_has_the_published_counts(data_folder):
    nodes, tokens, types, lowered = {}, {}, set(), set()
    for split in ("train", "dev", "test"):
        trees = read_trees(data_folder / "sst" / f"{split}.txt.xz")
        nodes[split] = sum(len(tree.nodes) for tree in trees)
        tokens[split] = sum(len(tree.tokens) for tree in trees)
        types |= {token for tree in trees for token in tree.tokens}
        lowered |= {token.lower() for token in types}
    assert nodes == {"train": 318_582, "dev": 41_447, "test": 82_600}
    assert tokens == {"train": 163_563, "dev": 21_274, "test": 42_405}
    assert (len(types), len(lowered)) == (21_701, 19_538)


@pytest.mark.data
def test_the_real_splits_have_the_published_counts(data_folder):
    two, five = Sst2().read(data_folder), Sst5().read(data_folder)
    assert Counter(example.label for example in two.train) == {1: 56_187, 0: 42_607}
    assert (len(two.dev), len(two.test)) == (872, 1821)
    assert Counter(example.label for example in five.dev) == {0: 139, 1: 289, 2: 229, 3: 279, 4: 165}
    assert Counter(example.label for example in five.test) == {0: 279, 1: 633, 2: 389, 3: 510, 4: 399}
    assert len(five.train) == 318_582


@pytest.mark.data
def test_the_real_sentences_have_the_published_counts(data_folder):
    two, five = Sst2Sentences().read(data_folder), Sst5Sentences().read(data_folder)
    assert len(two.train) == 6_920
    assert Counter(example.label for example in five.train) == {0: 1092, 1: 2218, 2: 1624, 3: 2322, 4: 1288}
    ratings = Counter(example.rating for example in SstRegressionSentences().read(data_folder).train)
    assert ratings == {-2: 1092, -1: 2218, 0: 1624, 1: 2322, 2: 1288}
    phrases = Counter(example.rating for example in SstRegression().read(data_folder).train)
    assert phrases.total() - phrases[0] == 98_794
