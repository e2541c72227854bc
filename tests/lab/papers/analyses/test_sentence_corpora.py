"""The two grammars of long-range tasks: answers and distances, read off the words by rules of the tests' own."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch

from unrolled.lab.papers.analyses.sentences import greeting_corpus as second_person
from unrolled.lab.papers.analyses.sentences.subject_verb_agreement import VOCABULARY, AgreementSentence

PLURALS = {"cats", "dogs", "birds", "children", "farmers", "teachers", "mice", "kings", "girls", "horses"}
SINGULARS = {"cat", "dog", "bird", "child", "farmer", "teacher", "mouse", "king", "girl", "horse"}


@pytest.mark.parametrize("distance", [8, 9, 20, 40])
def test_the_answer_is_the_second_person_that_far_away(distance):
    words, answers = second_person.batch(50, distance, random.Random(distance))
    for text, answer in zip(words.T.tolist(), answers.tolist(), strict=True):
        said = [second_person.VOCABULARY[index] for index in text]
        name = second_person.NAMES[answer]
        assert said.count(name) == 1
        assert len(said) - 1 - said.index(name) == distance
        assert said[-4] == said[0] != name
        assert said[-3:] == ["said", "hi", "to"]
    assert len(set(answers.tolist())) == len(second_person.NAMES)


def test_accuracy_counts_right_answers_by_distance():
    class Oracle(torch.nn.Module):
        """Finds the name that occurs once; it is right, and its opposite never is."""

        def forward(self, words):
            counts = torch.stack([(words == name).sum(dim=0) for name in range(len(second_person.NAMES))], dim=1)
            return (counts == 1).double()[None]

    class Wrong(Oracle):
        def forward(self, words):
            return -super().forward(words)

    for model, share in ((Oracle(), 1.0), (Wrong(), 0.0)):
        assert second_person.accuracy(model, [8, 15], 20, random.Random(0)) == {"8": share, "15": share}


@pytest.mark.parametrize("distance", range(26))
def test_the_verb_agrees_with_the_second_word_and_stands_where_it_should(distance):
    generator = random.Random(distance)
    for _ in range(40):
        sentence = AgreementSentence.draw(distance, generator)
        assert set(sentence.words) <= set(VOCABULARY)
        assert len(sentence.words) == distance + 6
        assert sentence.verb == distance + 2
        assert sentence.words[sentence.verb] == sentence.forms[0]
        assert sentence.plural == (sentence.words[1] in PLURALS)
        assert sentence.forms[0].endswith("s") != sentence.plural
        assert sorted(sentence.forms)[0] + "s" == sorted(sentence.forms)[1]
        nouns = [word for word in sentence.words[: sentence.verb] if word in PLURALS | SINGULARS]
        assert sentence.attracted == ((nouns[-1] in PLURALS) != sentence.plural)


def test_the_nearest_noun_tells_nothing_of_the_verb_and_verbs_within_agree_with_their_own_subjects():
    generator = random.Random(0)
    sentences = [AgreementSentence.draw(12, generator) for _ in range(2000)]
    # Some have no noun between, and the nearest is then the subject itself.
    within = [each for each in sentences if PLURALS.union(SINGULARS) & set(each.words[2 : each.verb])]
    assert 0.45 < sum(each.attracted for each in within) / len(within) < 0.55
    assert 0.45 < sum(each.plural for each in sentences) / 2000 < 0.55

    seen = Counter()
    for sentence in sentences:
        for place, word in enumerate(sentence.words[: sentence.verb]):
            if word == "that":
                noun, verb = next(
                    pair
                    for pair in zip(sentence.words[place + 2 :], sentence.words[place + 3 :], strict=False)
                    if pair[0] in PLURALS | SINGULARS
                )
                assert verb.endswith("s") != (noun in PLURALS)
                seen[noun in PLURALS] += 1
    assert min(seen.values()) > 300
