"""Tagged sentences, parallel text and running text: the user's own files."""

from __future__ import annotations

import gzip
import lzma
import re

import pytest

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.corpus import Characters, SentencePair, TaggedSentence, Tagging, Translation, Words
from unrolled.lab.data.formats import read_files
from unrolled.lab.data.text_files import LONGEST_LINE

BIO2 = b"".join(b"Ann%d NNP B-PER\nLee NNP I-PER\nsings VBZ O\n\n" % number for number in range(12))
LINES = 48  # of these
DE = b"".join(b"Ein Hund %d.\n" % number for number in range(12))
EN = b"".join(b"One dog %d.\n" % number for number in range(12))
BOOK = b"".join(b"Line %02d isn't long.\n" % number for number in range(30))


def write(folder, **contents):
    paths = []
    for name, content in contents.items():
        paths.append(folder / name.replace("__", "."))
        paths[-1].write_bytes(content)
    return paths


def spelled(stream):
    return [list(line) for line in stream]


@pytest.mark.parametrize("name", ["a__conll", "a__iob", "a__bio", "A__BIO"])
def test_columns_are_sentences_with_iobes_tags(tmp_path, name):
    corpus = read_files(Tagging, write(tmp_path, **{name: BIO2}))
    assert corpus.spans
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [10, 1, 1]
    assert corpus.train[0] == TaggedSentence(("Ann0", "Lee", "sings"), ("B-PER", "E-PER", "O"))


def test_other_schemes_packings_and_separators_are_the_same_corpus(tmp_path):
    iob1, iobes = BIO2.replace(b"B-PER", b"I-PER"), BIO2.replace(b"I-PER", b"E-PER")
    contents = {
        "a__conll": BIO2,
        "b__conll": iob1,
        "c__conll": iobes,
        "d__conll": BIO2.replace(b" ", b"\t").replace(b"\n", b"\r\n"),
        "e__conll__xz": lzma.compress(b"\xef\xbb\xbf" + BIO2),
        "f__conll__gz": gzip.compress(BIO2.replace(b"\n\n", b"\n \n\n")),
    }
    first, *others = (read_files(Tagging, [path]) for path in write(tmp_path, **contents))
    for other in others:
        assert (other.train, other.dev, other.test) == (first.train, first.dev, first.test)


def test_tags_that_spell_no_spans_stay_as_they_are(tmp_path):
    corpus = read_files(Tagging, write(tmp_path, a__conll=b"the DT\nI-NN B-2\n\n" * 12))
    assert not corpus.spans
    assert corpus.train[0].tags == ("DT", "B-2")


def test_a_type_met_in_one_length_may_be_met_in_another_but_a_new_type_may_not(tmp_path):
    train, test, new = write(
        tmp_path, a__conll=BIO2, b__conll=b"Bo B-PER\nsings O\n", c__conll=b"x O\n\nin O\nOslo B-LOC\n"
    )
    assert read_files(Tagging, [train], test=[test]).test[0].tags == ("S-PER", "O")
    with pytest.raises(
        DataError, match=rf"{re.escape(str(new))}:3: expected a label that training examples have, found"
    ):
        read_files(Tagging, [train], test=[new])


def test_two_files_are_parallel_text_cut_as_their_names_say(tmp_path):
    raw = read_files(Translation, write(tmp_path, a__de=DE, a__en=EN))
    assert [len(split) for split in (raw.train, raw.dev, raw.test)] == [10, 1, 1]
    assert raw.train[0] == SentencePair(("Ein", "Hund", "0", "."), ("One", "dog", "0", "."))
    cut = read_files(Translation, write(tmp_path, a__tok__de=DE, a__tok__en__txt=EN))
    assert cut.train[0] == SentencePair(("Ein", "Hund", "0."), ("One", "dog", "0."))
    assert cut.name == "a.tok"


def test_splits_of_parallel_text_have_two_files_each(tmp_path):
    train = write(tmp_path, a__de=DE, a__en=EN)
    test = write(tmp_path, b__de=DE[:12], b__en=EN[:11])
    assert len(read_files(Translation, train, test=test).test) == 1
    with pytest.raises(
        UsageError, match=r"1 file of parallel text \(.*b\.de\); expected two: a\.de a\.en translates from"
    ):
        read_files(Translation, train, test=test[:1])
    with pytest.raises(UsageError, match=r"4 files of parallel text"):
        read_files(Translation, [*train, *test])


def test_a_book_is_words_or_characters_cut_by_position(tmp_path):
    (path,) = write(tmp_path, book__txt=BOOK)
    words = read_files(Words, [path])
    assert (words.name, words.unit, type(words)) == ("book", "word", Words)
    assert spelled(words.train)[0] == ["Line", "00", "is", "n't", "long", ".", "<eos>"]
    assert [len(spelled(split)) for split in (words.train, words.dev, words.test)] == [24, 3, 3]
    assert spelled(words.test)[-1][1] == "29"
    letters = read_files(Characters, [path])
    assert letters.unit == "character"
    whole = "".join("".join(line) for split in (letters.train, letters.dev, letters.test) for line in split)
    assert whole.encode() == BOOK


def test_text_that_is_cut_already_keeps_its_tokens(tmp_path):
    corpus = read_files(Words, write(tmp_path, a__tokens=b"<unk> isn't @-@ it\n" * 30))
    assert spelled(corpus.dev)[0] == ["<unk>", "isn't", "@-@", "it", "<eos>"]


def test_splits_of_running_text_that_are_given_are_whole_files(tmp_path):
    first, last, dev, test = write(tmp_path, a__txt=BOOK, b__txt=BOOK.upper(), c__txt=b"dev\n", d__txt=b"test\n")
    corpus = read_files(Characters, [first, last], dev=[dev], test=[test, dev])
    assert "".join(map("".join, corpus.train)).encode() == BOOK + BOOK.upper()
    assert list(corpus.dev) == ["dev\n"]
    assert list(corpus.test) == ["test\n", "dev\n"]
    corpus = read_files(Characters, [first, last], test=[test])
    train, held = ("".join(map("".join, split)).encode() for split in (corpus.train, corpus.dev))
    assert train + held == BOOK + BOOK.upper()
    assert len(spelled(corpus.dev)) == 3  # a tenth of the last file
    assert list(corpus.test) == ["test\n"]


MALFORMED = [
    # (kind, files, which is named, line, what is said)
    (Tagging, {"a__conll": BIO2 + b"word\n"}, 0, LINES + 1, "3 columns, found 1 in 'word'; as the first line has"),
    (Tagging, {"a__conll": BIO2 + b"a b c O\n"}, 0, LINES + 1, "3 columns, found 4 in 'a b c O'"),
    (Tagging, {"a__conll": b"\nword\n"}, 0, 2, "a token and a tag, found 'word'; a line is a token and its tag"),
    (
        Tagging,
        {"a__conll": BIO2 + b"x X O\ny X I-PER\n"},
        0,
        LINES + 2,
        "B-PER after O, found 'I-PER'; in BIO2 every span",
    ),
    (Tagging, {"a__conll": BIO2 + b"x X B-LOC\ny X I-PER\n"}, 0, LINES + 2, "B-PER after B-LOC, found 'I-PER'"),
    (Tagging, {"a__conll": BIO2 + b"x X PER\n"}, 0, LINES + 1, "O, or B-, I- and a type, found 'PER'; the scheme is"),
    (Tagging, {"a__conll": BIO2 + b"x X B-\n"}, 0, LINES + 1, "O, or B-, I- and a type, found 'B-'"),
    (
        Tagging,
        {"a__conll": BIO2[: BIO2.index(b"\n\n") + 2] + b"x X S-PER\n"},
        0,
        3,
        "I-PER or E-PER after I-PER, found 'O'; in IOBES a span",
    ),
    (Tagging, {"a__conll": BIO2.replace(b"B-", b"I-") + b"x X B-PER\n"}, 0, LINES + 1, "I-PER after O, found 'B-PER'"),
    (Tagging, {"a__conll": BIO2 + b"\xff X O\n"}, 0, LINES + 1, "UTF-8 text, found the byte 0xff at column 1; save"),
    (Tagging, {"a__conll": BIO2 + b"x\0 X O\n"}, 0, LINES + 1, "text, found a NUL at column 2; the file is damaged"),
    (Tagging, {"a__conll__gz": gzip.compress(BIO2)[:15]}, 0, 1, "a whole .gz file, found"),
    (Translation, {"a__de": DE + b"mehr\n", "a__en": EN}, 1, 13, "a sentence, found the file's end; "),
    (Translation, {"a__de": DE, "a__en": EN + b"more\n"}, 0, 13, "a sentence, found the file's end; "),
    (
        Translation,
        {"a__de": DE + b"\n" + DE, "a__en": EN + b"more\n" + EN},
        0,
        13,
        "a sentence, found an empty line; remove the",
    ),
    (Translation, {"a__de": DE + b"mehr\n", "a__en": EN + b"\xc3\n"}, 1, 13, "UTF-8 text, found the byte 0xc3 at col"),
    (Translation, {"a__de": b"", "a__en": EN}, 0, 1, "a sentence, found the file's end; "),
    (Words, {"a__txt": b""}, 0, 1, "text, found none in the whole file; name a file that contains text"),
    (Words, {"a__txt": b"\n \n\t\r\n"}, 0, 1, "text, found none in the whole file"),
    (Characters, {"a__txt": BOOK + b"\xe9\n"}, 0, 31, "UTF-8 text, found the byte 0xe9 at column 1; save the file"),
    (Characters, {"a__txt": BOOK + b"x" * (10 * 2**20)}, 0, 31, "a line of at most 4,194,304 bytes, found a longer"),
    (Characters, {"a__txt": BOOK + b"\0"}, 0, 31, "text, found a NUL at column 1; the file is damaged, or is not"),
    (Words, {"a__txt__xz": lzma.compress(BOOK)[:24]}, 0, 1, "a whole .xz file, found Compressed file ended before"),
    (Words, {"a__txt": BOOK.decode().encode("utf-16")}, 0, 1, "UTF-8 text, found UTF-16; save"),
]


@pytest.mark.parametrize(
    ("kind", "contents", "named", "line", "expected"), MALFORMED, ids=[row[4] for row in MALFORMED]
)
def test_a_malformed_file_is_answered_in_one_line(tmp_path, kind, contents, named, line, expected):
    paths = write(tmp_path, **contents)
    with pytest.raises(DataError) as caught:
        read_files(kind, paths)
    said = str(caught.value)
    assert said.startswith(f"{paths[named]}:{line}: expected {expected}")
    assert "; " in said
    assert "\n" not in said
    assert caught.value.exit_code == 65


@pytest.mark.parametrize("text", [b"one line\n", b"x" * LONGEST_LINE, b"a\nb\n"])
def test_a_text_too_short_for_three_splits_is_refused(tmp_path, text):
    (path,) = write(tmp_path, a__txt=text)
    with pytest.raises(DataError, match=rf"{re.escape(str(path))}: expected at least 3 lines, and none much longer"):
        read_files(Characters, [path])


def test_what_stands_between_lines_for_others_is_text_here(tmp_path):
    """U+0085 and U+2028 end no line: tags and pairs stay together."""
    corpus = read_files(Tagging, write(tmp_path, a__conll="a\u2028b NN\nc VB\n\n".encode() * 12))
    assert {len(each.tokens) for each in corpus.train} == {2}
    pairs = write(tmp_path, a__tok__de="ein\u0085Hund\n".encode() * 12, a__tok__en=b"a dog\n" * 12)
    assert read_files(Translation, pairs).train[0].source == ("ein\u0085Hund",)
