from __future__ import annotations

import lzma
from collections import Counter

import pytest

from unrolled.errors import FileError
from unrolled.lab.data.corpus import Characters, Words
from unrolled.lab.data.datasets.ptb import PennTreebank, PennTreebankCharacters
from unrolled.lab.data.datasets.wikitext import WikiText2, WikiText103
from unrolled.lab.data.stream_encoding import build_vocabulary


def write(folder, source, pattern, text):
    (folder / source).mkdir()
    for split in ("train", "valid", "test"):
        (folder / source / f"{pattern.format(split)}.xz").write_bytes(lzma.compress(text.encode()))


def test_words_are_cut_at_spaces_and_every_line_has_an_end(tmp_path):
    write(tmp_path, "ptb", "ptb.{}.txt", " no it was n't <unk> \n N men \n")
    corpus = PennTreebank().read(tmp_path)
    lines = [["no", "it", "was", "n't", "<unk>", "<eos>"], ["N", "men", "<eos>"]]
    assert list(corpus.train) == list(corpus.dev) == list(corpus.test) == lines
    assert (type(corpus), corpus.unit) == (Words, "word")


def test_characters_keep_their_sign_for_a_space_and_the_blank_last_line_is_none(tmp_path):
    write(tmp_path, "ptb", "ptb.char.{}.txt", "i t _ < u n k >\nN\n \n")
    corpus = PennTreebankCharacters().read(tmp_path)
    assert list(corpus.train) == [["i", "t", "_", "<", "u", "n", "k", ">", "<eos>"], ["N", "<eos>"]]
    assert (type(corpus), corpus.unit) == (Characters, "character")


@pytest.mark.parametrize("source", [WikiText2, WikiText103])
def test_blank_lines_of_wikipedia_have_an_end_too(tmp_path, source):
    write(tmp_path, source.name, "{}.txt", " \n = Title = \n \n A @-@ b\u00a0c <unk> \n")
    lines = [["<eos>"], ["=", "Title", "=", "<eos>"], ["<eos>"], ["A", "@-@", "b\u00a0c", "<unk>", "<eos>"]]
    assert list(source().read(tmp_path).train) == lines


def test_what_is_not_at_hand_is_said_with_its_place(tmp_path):
    with pytest.raises(FileError, match=r"no wikitext103/train\.txt in .*; expected wikitext103/train\.txt, "):
        WikiText103().read(tmp_path)


def counted(stream):
    return Counter(token for line in stream for token in line)


@pytest.mark.data
def test_the_real_treebank_has_the_published_counts(data_folder):
    corpus = PennTreebank().read(data_folder)
    train, dev, test = (counted(split) for split in (corpus.train, corpus.dev, corpus.test))
    assert [each.total() for each in (train, dev, test)] == [929_589, 73_760, 82_430]
    assert [each.total() - each["<eos>"] for each in (train, dev, test)] == [887_521, 70_390, 78_669]
    assert [each["<eos>"] for each in (train, dev, test)] == [42_068, 3_370, 3_761]
    assert len(train) == 10_000
    assert set(dev) | set(test) <= set(train)
    assert len(build_vocabulary(corpus.train)) == 10_000 + 1  # and padding; <unk> is the text's own


@pytest.mark.data
def test_the_real_characters_have_the_published_counts(data_folder):
    corpus = PennTreebankCharacters().read(data_folder)
    train, dev, test = (counted(split) for split in (corpus.train, corpus.dev, corpus.test))
    assert [each.total() for each in (train, dev, test)] == [5_017_482, 393_042, 442_423]
    assert [each.total() - each["<eos>"] for each in (train, dev, test)] == [4_975_414, 389_672, 438_662]
    assert train.total() + train["<eos>"] == 5_059_550  # as papers count that have a space at each line's end
    assert len(train) == 50


@pytest.mark.data
def test_the_real_characters_are_the_real_words(data_folder):
    words, spelled = PennTreebank().read(data_folder).test, PennTreebankCharacters().read(data_folder).test
    for line, letters in zip(words, spelled, strict=True):
        assert "_".join(line[:-1]) == "".join(letters[:-1])


@pytest.mark.data
def test_the_real_wikitext2_has_the_published_counts(data_folder):
    corpus = WikiText2().read(data_folder)
    train, dev, test = (counted(split) for split in (corpus.train, corpus.dev, corpus.test))
    assert [each.total() for each in (train, dev, test)] == [2_088_628, 217_646, 245_569]
    assert [each["<eos>"] for each in (train, dev, test)] == [36_718, 3_760, 4_358]
    assert [each["<unk>"] for each in (train, dev, test)] == [54_625, 11_718, 15_218]
    assert len(train) == 33_278
