"""Pairs of sentences: what each asks, and what the tables say of a model that is right, wrong or does not know."""

from __future__ import annotations

from collections import Counter

import pytest

from unrolled.lab.data.corpus import Words
from unrolled.lab.data.load import load_dataset
from unrolled.lab.papers.analyses.sentences.sentence_pairs import CHOICES, GARDEN_PATHS, TEXTS
from unrolled.lab.papers.cs224d_notes_4.language import LanguageModels
from unrolled.lab.papers.cs577_lecture_5.sentence_pairs import SentencePairs
from unrolled.lab.papers.framework.experiment import Result, TrialSetup
from unrolled.lab.papers.framework.trial_training import full_settings


def test_a_garden_path_and_its_control_have_the_words_of_the_path_in_one_order():
    assert len(GARDEN_PATHS) >= 20
    for pair in GARDEN_PATHS:
        longer, shorter = pair.control.split(), pair.misleading.split()
        differing = Counter(shorter) - Counter(longer)
        assert longer != shorter
        assert longer[-2:] == shorter[-2:]  # the word follows the same two words
        assert sum(differing.values()) == (pair.kind == "subject after a verb")


def test_the_beginnings_of_a_choice_differ_in_one_noun_and_so_do_two_texts_in_order_or_in_one_word():
    assert len(CHOICES) >= 20
    for pair in CHOICES:
        both = list(zip(pair.first.split(), pair.second.split(), strict=True))
        assert sum(one != other for one, other in both) == 1
        assert pair.after_first != pair.after_second
    for pair in TEXTS:
        better, worse = pair.better.split(), pair.worse.split()
        if pair.kind == "order":
            assert better != worse
            assert sorted(better) == sorted(worse)
        else:
            assert sum(one != other for one, other in zip(better, worse, strict=True)) == 1


def everything(bits):
    values = {
        "garden": [bits["garden"]] * len(GARDEN_PATHS),
        "choices": [bits["choices"]] * len(CHOICES),
        "texts": [bits["texts"]] * len(TEXTS),
    }
    results = [Result(trial, values, 1.0, "", "", "", {}) for trial in SentencePairs().trials("cpu")]
    return [
        {tuple(row[:2]): row[2:] for row in table.cells()} for table in SentencePairs().report(results, "cpu").tables
    ]


RIGHT = {"garden": [9.0, 5.0], "choices": [1.0, 6.0, 7.0, 2.0], "texts": [20.0, 40.0]}
WRONG = {"garden": [5.0, 9.0], "choices": [6.0, 1.0, 2.0, 7.0], "texts": [40.0, 20.0]}
EQUAL = {"garden": [5.0, 5.0], "choices": [3.0, 3.0, 3.0, 3.0], "texts": [20.0, 20.0]}
ONE_WORD = {"garden": [9.0, 5.0], "choices": [1.0, 6.0, 1.5, 6.0], "texts": [20.0, 40.0]}
"""A model that finds the first word of every choice likely, and slightly less so after the second noun."""


@pytest.mark.parametrize(
    ("bits", "garden", "choices", "texts"),
    [
        (RIGHT, "100.0", ["100.0", "100.0"], "100.0"),
        (WRONG, "0.0", ["0.0", "0.0"], "0.0"),
        (EQUAL, "50.0", ["50.0", "50.0"], "50.0"),
        (ONE_WORD, "100.0", ["50.0", "100.0"], "100.0"),
    ],
)
def test_the_tables_count_what_is_right(bits, garden, choices, texts):
    paths, pronouns, ranked, *every = everything(bits)
    for name in ("GRU", "3-gram counts"):
        assert paths["all", name][-1] == garden
        assert pronouns["all", name][1:] == choices
        assert ranked["all", name][-1] == texts
    assert len(every) == 3


def test_counts_of_three_words_cannot_tell_what_differs_further_away(tmp_path):
    network, counts, *_ = SentencePairs().trials("smoke")
    found = SentencePairs().run(counts, TrialSetup(tmp_path, None, tmp_path / "networks"))
    apart = [place for place, pair in enumerate(CHOICES) if pair.first.split()[-2:] == pair.second.split()[-2:]]
    assert len(apart) > 10
    for place in apart:
        assert found["choices"][place][:2] == found["choices"][place][2:]
    of_network = SentencePairs().run(network, TrialSetup(tmp_path, None, tmp_path / "networks"))  # the control
    assert any(of_network["choices"][place][:2] != of_network["choices"][place][2:] for place in range(len(CHOICES)))


@pytest.mark.parametrize("scale", ["day", "paper"])
def test_networks_are_those_of_the_language_models(scale):
    def trained(settings, model):
        return full_settings("lm", model, settings["training"])

    there = [
        trained(t.settings, t.settings["model"])
        for t in LanguageModels().trials(scale)
        if t.settings["kind"] == "recurrent"
    ]
    own = [t.settings for t in SentencePairs().trials(scale) if t.settings.get("training", {}).get("seed") == 0]
    assert len(own) == 3
    assert all(trained(each, each["architecture"]) in there for each in own)


@pytest.mark.data
def test_all_words_are_words_of_the_treebank(data_folder):
    known = {word for line in load_dataset("ptb", Words, data_folder).train for word in line}
    used = {word for pair in (*GARDEN_PATHS, *CHOICES, *TEXTS) for part in pair[1:] for word in part.split()}
    assert used <= known
    assert "trophy" not in known
