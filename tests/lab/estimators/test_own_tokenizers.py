"""Functions of a user that split texts: what they may return, and what would be read as something else."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.errors import UsageError
from unrolled.sklearn import RecurrentClassifier

TEXTS = ["A good film", "a bad film", "a fine plot", "a dull plot"] * 4
MOODS = ["+", "-", "+", "-"] * 4
SMALL = {"hidden": 4, "embedding": 4, "epochs": 2, "random_state": 0}


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        (str.lower, "makes the string 'a good film' of the text 'A good film'; expected a list of its words"),
        (lambda text: set(text.split()), "makes a set of the text 'A good film'; expected a list of its words"),
        (lambda text: dict.fromkeys(text.split(), 1), "makes a dict of the text"),
        (lambda _: None, "makes a NoneType of the text"),
        (lambda text: [len(word) for word in text.split()], "makes an int a word of the text 'A good film'; expected"),
        (lambda text: [word.encode() for word in text.split()], "makes a bytes a word of the text"),
    ],
)
def test_what_is_no_list_of_words_is_refused(tokenizer, message):
    with pytest.raises(UsageError, match=f"^tokenizer {message}"):
        RecurrentClassifier(**SMALL, tokenizer=tokenizer).fit(TEXTS, MOODS)


@pytest.mark.parametrize(
    "tokenizer",
    [tuple, lambda text: iter(text), lambda text: np.array(list(text)), lambda text: (letter for letter in text)],
)
def test_letters_are_words_where_they_are_asked_for(tokenizer):
    asked = RecurrentClassifier(**SMALL, tokenizer=tokenizer).fit(TEXTS, MOODS)
    plain = RecurrentClassifier(**SMALL, tokenizer=list).fit(TEXTS, MOODS)
    assert asked.explain("a bad").tokens == ("a", " ", "b", "a", "d")
    assert np.array_equal(asked.predict_proba(TEXTS), plain.predict_proba(TEXTS))


def test_a_count_that_no_word_reaches_is_refused():
    with pytest.raises(UsageError, match="min_count is 17, and no word of the texts occurs so often"):
        RecurrentClassifier(**SMALL, min_count=17).fit(TEXTS, MOODS)
    assert RecurrentClassifier(**SMALL, min_count=8).fit(TEXTS, MOODS).words_.vocabulary.words[2:] == (
        "a",
        "film",
        "plot",
    )
