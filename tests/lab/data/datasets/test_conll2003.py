from __future__ import annotations

from collections import Counter

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.corpus import TaggedSentence
from unrolled.lab.data.datasets.conll2003 import Conll2003
from unrolled.lab.data.spans import convert_tags, tags_to_spans

HEAD = "-DOCSTART- -X- -X- O\n\n"
BIO2 = HEAD + "Ann NNP I-NP B-PER\nLee NNP I-NP I-PER\nsings VBZ I-VP O\n\nOslo NNP I-NP B-LOC\n"
IOB1 = HEAD + "Ann NNP I-NP I-PER\nLee NNP I-NP I-PER\nsings VBZ I-VP O\n\nOslo NNP I-NP I-LOC\n"
SENTENCES = (
    TaggedSentence(("Ann", "Lee", "sings"), ("B-PER", "E-PER", "O")),
    TaggedSentence(("Oslo",), ("S-LOC",)),
)


def write(folder, text=BIO2, train=None):
    (folder / "conll2003").mkdir()
    for split in ("train", "valid", "test"):
        chosen = train if train is not None and split == "train" else text
        (folder / "conll2003" / f"{split}.txt").write_text(chosen)


@pytest.mark.parametrize("text", [BIO2, IOB1, BIO2.replace(" ", "\t"), BIO2 + HEAD, BIO2.replace("\n", "\r\n")])
def test_either_scheme_is_read_and_given_as_iobes(tmp_path, text):
    write(tmp_path, text)
    corpus = Conll2003().read(tmp_path)
    assert corpus.train == corpus.dev == corpus.test == SENTENCES
    assert corpus.spans


def test_documents_of_one_sentence_each_stay_apart(tmp_path):
    write(tmp_path, HEAD + "a X X O\n" + HEAD.strip() + "\nb X X O\n")  # no empty line before the next document
    assert [each.tokens for each in Conll2003().read(tmp_path).train] == [("a",), ("b",)]


def test_a_stated_scheme_is_held_to(tmp_path):
    write(tmp_path, IOB1)
    assert Conll2003(scheme="IOB1").read(tmp_path).train == SENTENCES
    with pytest.raises(DataError, match=r"train\.txt:3: expected B-PER after O, found 'I-PER'; in BIO2"):
        Conll2003(scheme="BIO2").read(tmp_path)


def test_an_i_tag_with_no_beginning_is_named_where_it_stands(tmp_path):
    write(tmp_path, train=BIO2 + "\nin IN I-PP O\nRome NNP I-NP I-LOC\n")
    with pytest.raises(
        DataError, match=r"train\.txt:10: expected B-LOC after O, found 'I-LOC'; in BIO2 every span begins"
    ):
        Conll2003().read(tmp_path)


@pytest.mark.data
def test_the_real_files_have_the_published_counts(data_folder):
    corpus = Conll2003().read(data_folder)
    # blocks without the 946, 216 and 231 that begin documents
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [
        14_987 - 946,
        3_466 - 216,
        3_684 - 231,
    ]
    entities = []
    for split, tokens in ((corpus.train, 203_621), (corpus.dev, 51_362), (corpus.test, 46_435)):
        assert sum(len(each.tokens) for each in split) == tokens
        entities.append(Counter(span.kind for each in split for span in tags_to_spans(each.tags, "IOBES")))
    assert entities == [
        {"LOC": 7_140, "MISC": 3_438, "ORG": 6_321, "PER": 6_600},
        {"LOC": 1_837, "MISC": 922, "ORG": 1_341, "PER": 1_842},
        {"LOC": 1_668, "MISC": 702, "ORG": 1_661, "PER": 1_617},
    ]


@pytest.mark.data
def test_the_real_tags_written_as_the_original_files_are_the_same_sentences(data_folder, tmp_path):
    """IOB1, as eng.train has it: recognised, and the same entities."""
    corpus = Conll2003().read(data_folder)
    (tmp_path / "conll2003").mkdir()
    for split, name in ((corpus.train, "train"), (corpus.dev, "valid"), (corpus.test, "test")):
        blocks = []
        for each in split:
            tags = convert_tags(each.tags, "IOBES", "IOB1")
            blocks.append("".join(f"{token} {tag}\n" for token, tag in zip(each.tokens, tags, strict=True)))
        (tmp_path / "conll2003" / f"{name}.txt").write_text("\n".join(blocks), encoding="utf-8")
    assert Conll2003().read(tmp_path) == corpus
