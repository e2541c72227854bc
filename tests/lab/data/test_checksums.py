"""Checksums of a corpus: what changed is told apart from what was added, left out or moved."""

from __future__ import annotations

import os
from dataclasses import replace
from hashlib import blake2b
from itertools import combinations

import pytest

from unrolled.errors import DataError, FileError
from unrolled.lab.data.checksums import CorpusChecksums, file_checksums
from unrolled.lab.data.corpus import Candidate, Classification, Example, Question, RatedText, SentencePair, Words
from unrolled.lab.data.corpus import Stream as Text
from unrolled.lab.papers.framework.corpora import SMALL
from unrolled.lab.papers.framework.synthetic_corpora import SYNTHETIC

EXAMPLES = tuple(Example(("word", str(i)), i % 2) for i in range(20))
CORPUS = Classification(name="it", labels=("no", "yes"), train=EXAMPLES[:12], dev=EXAMPLES[12:16], test=EXAMPLES[16:])


def changes(after, before=CORPUS):
    return CorpusChecksums.of(before, {}).changes(CorpusChecksums.of(after, {}))


def test_the_same_corpus_has_not_changed_and_its_name_does_not_matter():
    assert changes(replace(CORPUS, name="other")).lines == ()


@pytest.mark.parametrize("kind", SYNTHETIC)
def test_every_kind_of_corpus_has_checksums_that_json_keeps(kind):
    corpus = SYNTHETIC[kind](SMALL, 0)
    found = CorpusChecksums.of(corpus, {})
    assert CorpusChecksums.from_record(found.to_record()) == found
    assert found.changes(CorpusChecksums.of(SYNTHETIC[kind](SMALL, 0), {})).lines == ()
    assert found.changes(CorpusChecksums.of(SYNTHETIC[kind](SMALL, 1), {})).examples


@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_one_flipped_label_and_one_word_are_noticed_wherever_they_are(split, place):
    for flipped in (Example(("word", "x"), 0), Example(getattr(CORPUS, split)[place].tokens, 7)):
        rows = list(getattr(CORPUS, split))
        rows[place] = flipped
        (line,) = changes(replace(CORPUS, **{split: tuple(rows)})).lines
        assert line.startswith(f"{split}: 1 of {len(rows)} examples are new, the first is number {place + 1}, 1 of the")


def test_an_example_of_train_and_dev_counts_as_one_of_train():
    both = replace(CORPUS, dev=(EXAMPLES[0], *EXAMPLES[12:14]))
    assert CorpusChecksums.of(both, {}).shared((EXAMPLES[0], EXAMPLES[5], EXAMPLES[12], EXAMPLES[19])) == (2, 1)


def test_order_additions_and_what_is_gone_are_told_apart():
    train = CORPUS.train
    said = {
        "the same 12 examples are in another order": train[::-1],
        "2 of 14 examples are new, the first is number 13": (*train, *EXAMPLES[-2:]),
        "3 of the 12 examples of before are gone": train[3:],
        "1 of 12 examples are new, the first is number 1, 1 of the 12 examples of before are gone": (
            EXAMPLES[-1],
            *train[1:],
        ),
        "1 of 13 examples are new, the first is number 1, the others are in another order": (
            EXAMPLES[-1],
            *train[::-1],
        ),
    }
    for line, rows in said.items():
        assert changes(replace(CORPUS, train=rows)).examples == (f"train: {line}",)


def test_a_repeated_example_counts_as_often_as_it_occurs():
    assert "1 of 13 examples are new" in changes(replace(CORPUS, train=(*CORPUS.train, CORPUS.train[0]))).lines[0]


def test_a_change_of_one_of_several_equal_examples_is_told_where_it_is():
    twice = replace(CORPUS, train=(*CORPUS.train, CORPUS.train[0]))
    said = {
        "1 of 13 examples are new, the first is number 13": twice.train,
        "1 of 12 examples are new, the first is number 12, 1 of the 12 examples of before are gone": (
            *CORPUS.train[:-1],
            CORPUS.train[0],
        ),
    }
    for line, rows in said.items():
        assert changes(replace(CORPUS, train=rows)).examples == (f"train: {line}",)
    other = replace(CORPUS, train=(EXAMPLES[-1], *twice.train[1:]))
    (line,) = changes(other, before=twice).examples
    assert line == "train: 1 of 13 examples are new, the first is number 1, 1 of the 13 examples of before are gone"
    assert changes(CORPUS, before=twice).examples == ("train: 1 of the 13 examples of before are gone",)


def test_other_labels_are_named():
    assert changes(replace(CORPUS, labels=("a", "b"))).fields == (
        "the labels of the corpus were ('no', 'yes'), and are ('a', 'b')",
    )


def test_running_text_says_from_where_it_differs():
    lines = [[f"w{i}", "of", "text"] for i in range(1000)]

    def corpus(train):
        return Words(
            name="text", train=Text(lambda: iter(train)), dev=Text(lambda: iter(lines)), test=Text(lines[:5].__iter__)
        )

    changed = [*lines[:300], ["other"], *lines[301:]]
    assert changes(corpus(lines), corpus(lines)).lines == ()
    assert changes(corpus(changed), corpus(lines)).examples == ("train: the text is another one after line 256",)
    assert changes(corpus([*lines, ["more"]]), corpus(lines)).examples


def test_what_was_learned_from_is_counted_in_what_is_evaluated():
    before = CorpusChecksums.of(CORPUS, {})
    mixed = replace(CORPUS, test=(*CORPUS.train[:3], CORPUS.dev[0], *CORPUS.test))
    assert before.learned(CorpusChecksums.of(mixed, {}), "test") == (4, 8)
    assert before.learned(before, "test") == (0, 4)


def test_files_are_compared_by_their_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    before = CorpusChecksums.of(CORPUS, file_checksums({"a": tmp_path / "a"}))
    (tmp_path / "a").write_bytes(b"2")
    after = CorpusChecksums.of(CORPUS, file_checksums({"a": tmp_path / "a", "b": tmp_path / "a"}))
    assert before.changes(after).files == ("the file a has other content", "the file b is new")
    assert after.changes(before).files[1] == "the file b is not among the files any more"
    os.mkfifo(tmp_path / "pipe")  # it would wait for a writer for ever
    assert file_checksums({"pipe": tmp_path / "pipe"}) == {"pipe": "not a regular file"}
    with pytest.raises(FileError, match="gone: cannot be read"):
        file_checksums({"gone": tmp_path / "gone"})


def test_examples_that_are_spelled_alike_differ():
    alike = [
        Example(("a", "b"), 1),
        Example(("a b",), 1),
        Example(("a", "b", "1"), 1),
        RatedText(("a", "b"), 1.0),
        SentencePair(("a",), ("b",)),
        SentencePair(("a", "b"), ()),
        SentencePair((), ("a", "b")),
        Question(("a",), (Candidate(("b",), True),)),
        Question(("a",), (Candidate(("b",), False),)),
        Question(("a",), (Candidate((), True), Candidate(("b",), False))),
        ("a", "b"),
        (1, 2),
        (12,),
    ]
    found = [CorpusChecksums.of(replace(CORPUS, train=(each,)), {}).splits["train"] for each in alike]
    assert all(first != second for first, second in combinations(found, 2))


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"splits": 3},
        {"files": {}, "fields": {}, "text": False, "splits": dict.fromkeys(("train", "dev", "test"), "x")},
    ],
)
def test_a_record_of_nonsense_is_refused(record):
    with pytest.raises(DataError, match="these are no checksums of a corpus"):
        CorpusChecksums.from_record(record)


@pytest.mark.parametrize(
    ("example", "spelled"),
    [
        (Example(("not", "bad"), 1), "2\0not\0bad\0" + "1"),
        (Example((), 0), "0\0\0" + "0"),
        (Example(("\ud800",), 0), "1\0\ud800\0" + "0"),
        (SentencePair(("a", "b"), ("c",)), "2\0a\0b\0" + "1\0c"),
        (Question(("who",), (Candidate(("me",), True),)), "1\0who\0" + "1\0" + "1\0me\0True"),
        ("a line", "a line"),
    ],
)
def test_a_checksum_is_that_of_the_text_that_earlier_runs_have_kept(example, spelled):
    corpus = Classification(name="it", labels=("no", "yes"), train=(example,), dev=(), test=())
    expected = blake2b(spelled.encode(errors="surrogatepass"), digest_size=8).digest()
    assert CorpusChecksums.of(corpus, {}).splits["train"] == expected
