"""Quotes behind a separator and a space enclose a field; quotes that belong to a text stay in it."""

from __future__ import annotations

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Classification, Regression
from unrolled.lab.data.formats import read_files
from unrolled.lab.data.reading import Reading
from unrolled.lab.data.unlabelled import read_texts


def save(folder, content, name="a.csv"):
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def rows(form, count=40):
    return "".join(form(number, ("positive", "negative")[number % 2]) + "\n" for number in range(count))


def read(path, kind=Classification, **said):
    corpus = read_files(kind, [path], reading=Reading(**said))
    return corpus, {example.text for split in (corpus.train, corpus.dev, corpus.test) for example in split}


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
@pytest.mark.parametrize(
    "form",
    [
        lambda n, label: f'film number {n}, "{label}"',
        lambda n, label: f'"film number {n}", "{label}"',
        lambda n, label: f'film number {n},   "{label}"  ',
        lambda n, label: f"film number {n}, {label}" if n % 3 else f'film number {n}, "{label}"',
    ],
)
def test_labels_lose_the_quotes_and_the_user_is_told(tmp_path, separator, form):
    content = rows(form).replace(",", separator)
    for header in ("", f'text{separator} "label"\n'):
        corpus, texts = read(save(tmp_path, header + content))
        assert corpus.labels == ("negative", "positive")
        assert texts == {f"film number {n}" for n in range(40)}
        assert "and spaces, also before quotes" in corpus.notes[0]


def test_separators_in_such_quotes_separate_nothing(tmp_path):
    content = "id, text, label\n" + rows(lambda n, label: f'{n}, "film {n}, a ""new"" one, he said", {label}')
    corpus, texts = read(save(tmp_path, content))
    assert corpus.labels == ("negative", "positive")
    assert texts == {f'film {n}, a "new" one, he said' for n in range(40)}


def test_a_line_end_in_such_quotes_ends_no_row(tmp_path):
    _, texts = read(save(tmp_path, "label,text\n" + rows(lambda n, label: f'{label}, "film {n}\nand more"')))
    assert texts == {f"film {n}\nand more" for n in range(40)}


def test_ratings_in_such_quotes_are_numbers(tmp_path):
    path = save(tmp_path, "text,rating\n" + "".join(f'film number {n}, "{n % 7 / 2}"\n' for n in range(40)))
    corpus, _ = read(path, Regression)
    assert {example.rating for example in corpus.train} == {n / 2 for n in range(7)}


@pytest.mark.parametrize(
    "said",
    [
        '"Never again" says film {n}',  # quotes of a part of the text
        '"film {n}',  # a quote that nothing closes
    ],
)
def test_quotes_of_a_text_stay_in_it(tmp_path, said):
    corpus, texts = read(save(tmp_path, "label,text\n" + rows(lambda n, label: f"{label}, " + said.format(n=n))))
    assert texts == {" " + said.format(n=n) for n in range(40)}
    assert not any("spaces" in note for note in corpus.notes)


def test_a_text_with_separators_that_is_in_no_quotes_is_refused(tmp_path):
    content = "label,text\n" + rows(lambda n, label: f"{label}, plain film {n}")
    with pytest.raises(DataError, match=r"a\.csv:42: expected 2 columns, found 4"):
        read(save(tmp_path, content + 'bad, he said, "great", they say'))


def test_one_quote_that_belongs_to_a_text_keeps_all_as_they_are(tmp_path):
    """A rule that is right for most rows and wrong for one would change that text without a word."""
    content = rows(lambda n, label: f'{label}, "film {n}"' if n else f'{label}, "film" number zero')
    _, texts = read(save(tmp_path, "label,text\n" + content))
    assert ' "film" number zero' in texts
    assert ' "film 5"' in texts


def test_texts_without_labels_are_read_in_the_same_manner(tmp_path):
    said = []
    path = save(tmp_path, "id, text\n" + rows(lambda n, label: f'{n}, "film {n}, {label}"'))
    assert [text for _, text in read_texts(path, Reading(), say=said.append)][:2] == [
        "film 0, positive",
        "film 1, negative",
    ]
    assert said == [f"{path}: separated by a comma and spaces, also before quotes"]


def test_quotes_within_a_line_of_a_quoted_text_are_no_sign_of_spaces(tmp_path):
    """A line of such a text may begin like a field in quotes behind a space."""
    form = '"film {}\nreally, ""very"" {}",{}'.format
    corpus, texts = read(save(tmp_path, "review,label\n" + rows(lambda n, label: form(n, "good", label))))
    assert texts == {f'film {n}\nreally, "very" good' for n in range(40)}
    assert not any("spaces" in note for note in corpus.notes)
    corpus, _ = read(save(tmp_path, "review, label\n" + rows(lambda n, label: f'"a ""fine"" film {n}", "{label}"')))
    assert "and spaces, also before quotes" in corpus.notes[0]


@pytest.mark.parametrize("quotes", ["''", "\u201c\u201d", "\u00ab\u00bb"])
def test_labels_that_keep_other_quotes_are_named(tmp_path, quotes):
    begin, end = quotes
    corpus, _ = read(save(tmp_path, "text,label\n" + rows(lambda n, label: f"film {n},{begin}{label}{end}")))
    assert f"quotes are learned as part of labels: {begin}negative{end}, {begin}positive{end}" in corpus.notes[-1]


def test_a_space_behind_a_quote_is_refused_with_what_to_do(tmp_path):
    path = save(tmp_path, rows(lambda n, label: f'"film {n}" , "{label}"'))
    with pytest.raises(DataError, match=r"a\.csv:1: .*no space between a quote and the separator behind it"):
        read(path)
