"""Made-up corpora: each is judged by rules written apart from the grammar that drew it."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from unrolled.errors import UsageError
from unrolled.lab.data import corpus as kinds
from unrolled.lab.data.batches.labelled_sequences import closing_targets
from unrolled.lab.data.datasets.negation import NEGATIVE, POSITIVE
from unrolled.lab.papers.framework import synthetic_corpora as made_up
from unrolled.lab.papers.framework.synthetic_corpora import SYNTHETIC

EVERY = [*SYNTHETIC.values(), made_up.topics]
SIZES = (120, 20, 30)


def test_there_is_one_for_every_kind_of_corpus():
    every = {value for name, value in vars(kinds).items() if name in kinds.__all__ and isinstance(value, type)}
    concrete = {kind for kind in every if issubclass(kind, kinds.Corpus)} - {
        kinds.Corpus,
        kinds.Examples,
        kinds.Language,
    }
    assert set(SYNTHETIC) == concrete, "write a function in SYNTHETIC for each kind of lab/data/corpus.py"
    for kind, make in SYNTHETIC.items():
        assert type(make(SIZES, 0)) is kind


@pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)
def test_sizes_are_as_asked_nothing_occurs_twice_and_the_seed_decides(make):
    corpus = make(SIZES, 3)
    splits = [list(split) for split in (corpus.train, corpus.dev, corpus.test)]
    assert tuple(map(len, splits)) == SIZES
    every = [example for split in splits for example in split]
    assert len(set(every)) == len(every)

    again, other = (list(make(SIZES, seed).train) for seed in (3, 4))
    assert again == splits[0] != other


@pytest.mark.parametrize("make", [made_up.topics, made_up.negation, made_up.relations, made_up.ratings])
def test_no_text_has_two_labels_and_none_of_the_test_is_in_train(make):
    corpus = make(SIZES, 0)
    texts = [example.tokens for split in (corpus.train, corpus.dev, corpus.test) for example in split]
    assert len(set(texts)) == len(texts)


def test_the_nouns_tell_the_topic():
    corpus = made_up.topics(SIZES)
    topics_of = {}
    for example in corpus.train:
        for noun in re.findall(r"the (\w+) (?!end)", " ".join(example.tokens)):
            topics_of.setdefault(noun, set()).add(example.label)
    assert len(topics_of) == 24
    assert all(len(topics) == 1 for topics in topics_of.values())
    assert {example.label for example in corpus.test} == {0, 1, 2, 3}


def test_the_adjective_and_how_often_it_is_negated_tell_the_polarity():
    corpus = made_up.negation(SIZES)
    for example in corpus.train:
        good = example.tokens[-1] in POSITIVE
        assert good or example.tokens[-1] in NEGATIVE
        assert example.label == (good + example.tokens.count("not")) % 2
    assert len({example.tokens.count("not") for example in corpus.train}) == 3
    with pytest.raises(UsageError, match="201 sentences were asked for; the negation corpus has 200 for dev"):
        made_up.negation((10, 201, 10))


def test_a_rating_is_between_its_extremes_and_negation_turns_it():
    rating = {example.tokens: example.rating for example in made_up.ratings((3000, 20, 20)).train}
    assert min(rating.values()) == -1.0
    assert max(rating.values()) == 1.0
    turned = 0
    for tokens, value in rating.items():
        plain = tuple(token for token in tokens if token != "not")
        if tokens.count("not") == 1 and plain in rating:
            place = tokens.index("not") + 1
            assert (value < rating[plain]) == (tokens[place] in {"superb", "good", "decent"})
            turned += 1
    assert turned > 20


def test_the_direction_of_a_relation_is_in_the_words_between():
    corpus = made_up.relations(SIZES)
    between = {}
    for example in corpus.train:
        assert [sum(token == mark for token in example.tokens) for mark in ("<e1>", "</e1>", "<e2>", "</e2>")] == [
            1
        ] * 4
        words = example.tokens[example.tokens.index("</e1>") + 1 : example.tokens.index("<e2>")]
        between.setdefault(words, set()).add(corpus.labels[example.label])
    assert len(between) == 10
    assert all(len(labels) == 1 for labels in between.values())
    assert between["caused", "the"] == {"Cause-Effect(e1,e2)"}
    assert between["was", "caused", "by", "the"] == {"Cause-Effect(e2,e1)"}


def test_names_are_ambiguous_alone_but_not_beside_their_neighbours():
    corpus = made_up.entities((400, 20, 20))
    alone, together = {}, {}
    for sentence in corpus.train:
        assert len(sentence.tokens) == len(sentence.tags)
        spelled = " ".join(sentence.tags)
        assert re.fullmatch(r"(O ?|S-[A-Z]+ ?|B-([A-Z]+) (I-\2 )*E-\2 ?)+", spelled), spelled
        padded = ("", *sentence.tokens, "")
        for place, tag in enumerate(sentence.tags):
            alone.setdefault(padded[place + 1], set()).add(tag)
            together.setdefault(padded[place : place + 3], set()).add(tag)
    assert corpus.spans
    assert len(alone["darwin"]) >= 4
    assert all(len(tags) == 1 for tags in together.values())


def test_verbs_agree_with_their_subjects():
    plurals = {"cats", "dogs", "farmers", "children", "mice", "teachers", "birds"}
    seen = Counter()
    for line in made_up.words(SIZES).train:
        text = " ".join(line)
        found = re.fullmatch(r"the (?:\w+ )?(\w+) (\w+) the (?:\w+ )?\w+ \. <eos>", text)
        assert found, text
        assert found[2].endswith("s") != (found[1] in plurals)
        seen[found[1] in plurals] += 1
    assert min(seen.values()) > 30


def test_characters_spell_lines_and_close_their_quotes():
    lines = ["".join(line) for line in made_up.characters(SIZES).train]
    assert all(line.endswith(".\n") and line.count("\n") == 1 for line in lines)
    assert {line.count('"') for line in lines} == {0, 2}
    assert all(len(character) == 1 for line in made_up.characters(SIZES).test for character in line)


def test_a_translation_puts_the_verb_last_and_translates_word_by_word():
    for pair in made_up.translations(SIZES).train:
        back = [word[::-1] for word in pair.target]
        verb = back.pop()
        assert verb.rstrip("s") in {"see", "chase", "know", "love", "hear"}
        place = pair.source.index(verb)
        assert list(pair.source) == [*back[:place], verb, *back[place:]]


def test_one_candidate_answers_and_the_others_speak_of_something_else():
    verbs = {"live": "lives", "work": "works", "come": "comes", "go": "went"}
    for question in made_up.answers(SIZES, candidates=6).train:
        assert len(question.candidates) == 6
        person, verb = question.tokens[2], verbs[question.tokens[3]]
        fits = [candidate.tokens[:2] == (person, verb) for candidate in question.candidates]
        assert fits == [candidate.right for candidate in question.candidates]
        assert sum(fits) == 1
    with pytest.raises(UsageError, match="33 candidates were asked for; expected 2 to 32"):
        made_up.answers(candidates=33)


def test_strings_of_brackets_are_well_formed_and_reach_the_depth():
    corpus = made_up.brackets(SIZES, kinds=3, depth=4, longest=20)
    deepest = 0
    for string in corpus.train:
        closing_targets(string, kinds=3, depth=4)
        assert len(string) <= 20
        open_now = 0
        for bracket in string:
            open_now += 1 if bracket < 3 else -1
            deepest = max(deepest, open_now)
    assert deepest == 4


def test_a_grammar_that_is_too_small_says_so():
    with pytest.raises(UsageError, match="the grammar gave only 2 different examples of 100"):
        made_up.brackets((80, 10, 10), kinds=1, depth=1, longest=4)
