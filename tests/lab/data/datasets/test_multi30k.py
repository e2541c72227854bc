from __future__ import annotations

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.corpus import SentencePair
from unrolled.lab.data.datasets.multi30k import Multi30k, Multi30kFromEnglish


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "multi30k").mkdir()
    for split in ("train", "val", "test_2016_flickr", "test_2017_flickr"):
        for language, text in (("de", "ein hund .\nzwei katzen .\n"), ("en", "a dog .\ntwo cats .\n")):
            (tmp_path / "multi30k" / f"{split}.lc.norm.tok.{language}").write_text(f"{text}{split}\n")
    return tmp_path


def test_line_i_goes_with_line_i_in_either_direction(folder):
    there, back = Multi30k().read(folder), Multi30kFromEnglish().read(folder)
    assert there.train[0] == SentencePair(("ein", "hund", "."), ("a", "dog", "."))
    assert [SentencePair(pair.target, pair.source) for pair in there.train] == list(back.train)
    assert there.test[2].source == ("test_2016_flickr",)
    assert Multi30k(year=2017).read(folder).test[2].source == ("test_2017_flickr",)


@pytest.mark.parametrize(
    ("language", "text", "message"),
    [
        ("en", "a dog .\n", r"\.en:2: expected a sentence, found the file's end; .*\.de has more lines; line i of one"),
        ("de", "ein hund .\n", r"\.de:2: expected a sentence, found the file's end; .*\.en has more lines"),
        ("en", "a dog .\n\ntrain\n", r"\.en:2: expected a sentence, found an empty line; remove the line here and"),
        ("de", "ein hund .\n \nx\n", r"\.de:2: expected a sentence, found an empty line; remove the line here"),
    ],
)
def test_lines_without_a_counterpart_are_named(folder, language, text, message):
    (folder / "multi30k" / f"train.lc.norm.tok.{language}").write_text(text)
    with pytest.raises(DataError, match=message):
        Multi30k().read(folder)


@pytest.mark.data
def test_the_real_captions_have_the_published_counts(data_folder):
    one, other = Multi30k().read(data_folder), Multi30k(year=2017).read(data_folder)

    def counted(sentences):
        return sum(map(len, sentences)), len({word for sentence in sentences for word in sentence})

    found = [
        (len(split), *counted([pair.target for pair in split]), *counted([pair.source for pair in split]))
        for split in (one.train, one.dev, one.test, other.test)
    ]
    assert found == [
        (29_000, 377_534, 10_210, 360_706, 18_722),
        (1_014, 13_308, 1_964, 12_828, 2_303),
        (1_000, 12_968, 1_898, 12_103, 2_125),
        (1_000, 11_376, 1_790, 10_758, 2_153),
    ]
