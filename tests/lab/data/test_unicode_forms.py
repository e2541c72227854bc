"""A letter with an accent is one word however it is composed; a stored vocabulary of before reads what it read."""

from __future__ import annotations

import unicodedata

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Candidate, Characters, Classification, Example, Question, Selection, Stream
from unrolled.lab.data.stream_encoding import build_vocabulary, encode_stream
from unrolled.lab.data.tokenise import tokenise
from unrolled.lab.data.unicode_forms import note_of_forms
from unrolled.lab.data.vocabulary import UNKNOWN, Vocabulary
from unrolled.lab.data.word_vectors import read_vectors
from unrolled.lab.tasks.chars import CharacterModelling, CharacterModelSettings
from unrolled.lab.tasks.rank import Rank, RankSettings

APART, ONE = "cafe\u0301", "caf\u00e9"
KOREAN = unicodedata.normalize("NFD", "\ud55c\uad6d"), "\ud55c\uad6d"
KANA = "\u304b\u3099", "\u304c"
GREEK = unicodedata.normalize("NFD", "\u1f00\u03c1\u03c7\u03ae"), "\u1f00\u03c1\u03c7\u03ae"
FORMS = pytest.mark.parametrize("forms", [(APART, ONE), KOREAN, KANA, GREEK], ids=["latin", "jamo", "kana", "greek"])


@FORMS
@pytest.mark.parametrize("lowercase", [False, True])
def test_both_forms_are_one_word_whichever_the_training_text_has(forms, lowercase):
    for trained in forms:
        vocabulary = Vocabulary.from_texts([tokenise(trained), ["tea"]], lowercase=lowercase)
        first, second = (vocabulary.encode(tokenise(form)) for form in forms)
        assert first == second != [UNKNOWN]
        assert vocabulary.unknown(forms) == ()
        assert all(form in vocabulary for form in forms)
        assert all(unicodedata.is_normalized("NFC", word) for word in vocabulary.words)


@FORMS
def test_counts_of_both_forms_are_added_up(forms):
    texts = [[forms[0], "tea"], [forms[1]], ["tea"]]
    for vocabulary in (Vocabulary.from_texts(texts, min_count=2), build_vocabulary(texts, min_count=2)):
        assert set(vocabulary.words[2:]) == {forms[1], "tea"}


def test_words_that_only_resemble_each_other_stay_apart():
    words = ["cafe", ONE, "\ufb01ne", "fine", "\u03b1", "a"]  # no accent, a ligature, the Greek letter
    assert len(set(Vocabulary.from_texts([words]).encode(words))) == len(words)


def test_a_vocabulary_that_was_stored_before_reads_what_it_read():
    vocabulary = Vocabulary.from_texts([[ONE]])
    record = vocabulary.to_record()
    assert Vocabulary.from_record(record) == vocabulary
    del record["composed"]
    before = Vocabulary.from_record(record)
    assert before.encode([ONE, APART]) == [2, UNKNOWN]
    apart = Vocabulary.from_record({**record, "words": [*record["words"][:2], APART, ONE]})
    assert apart.encode([APART, ONE]) == [2, 3]
    with pytest.raises(DataError, match='"composed" is 1; expected true or false'):
        Vocabulary.from_record({**record, "composed": 1})


def test_characters_take_their_accents():
    lines = [APART + "\n", ONE + "\n"]
    vocabulary = build_vocabulary(lines)
    assert "\u0301" not in vocabulary
    first, second = (encode_stream([line], vocabulary).tolist() for line in lines)
    assert first == second
    task = CharacterModelling(CharacterModelSettings(), vocabulary)
    assert task.tokenise(APART) == task.tokenise(ONE) == tuple(ONE)
    before = CharacterModelling(CharacterModelSettings(), Vocabulary((*vocabulary.words, "\u0301")))
    assert before.tokenise(APART) == tuple(APART)
    assert len(encode_stream(lines[:1], before.vocabulary)) == len(encode_stream(lines[1:], before.vocabulary)) + 1


def test_a_question_and_a_sentence_share_the_word():
    question = Question((APART, "?"), (Candidate((ONE, "."), True), Candidate(("tea", "."), False)))
    corpus = Selection(name="made", train=(question,), dev=(question,), test=(question,))
    task = Rank.from_corpus(corpus, RankSettings())
    assert task.encode([question]).rows[0].shared[0, :, 0].tolist() == [0.5, 0.0]
    before = Rank(task.architecture, Vocabulary(task.vocabulary.words), task.overlap)
    assert before.encode([question]).rows[0].shared[0, :, 0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("written", [APART, ONE])
def test_a_file_of_vectors_in_either_form_has_the_word(tmp_path, written):
    path = tmp_path / "vectors.txt"
    path.write_text(f"tea 1 2\n{written} 3 4\n", encoding="utf-8")
    assert read_vectors(path, Vocabulary.from_texts([[APART]])).matrix[2].tolist() == [3.0, 4.0]


def made(*texts):
    examples = tuple(Example(tuple(text.split()), 0) for text in texts)
    return Classification(name="made", train=examples, dev=(), test=(), labels=("a", "b"))


def test_the_user_is_told_which_words_are_read_in_another_form():
    (note,) = note_of_forms(made(f"{APART} {APART} tea", f"tea e\u0301te\u0301 {ONE}"))
    assert note.startswith("made: 2 words of the training text are not written in Unicode's form NFC, such as 'cafe\\u")
    assert list(note_of_forms(made(f"tea {ONE}", "so \ufb01ne"))) == []
    lines = Stream(lambda: iter([f"tea {APART}\n"]))
    (note,) = note_of_forms(Characters(name="made", train=lines, dev=lines, test=lines))
    assert note.startswith("made: 1 word of the training text is not")
