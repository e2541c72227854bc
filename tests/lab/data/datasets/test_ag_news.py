from __future__ import annotations

from collections import Counter

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.datasets.ag_news import AgNews, AgNewsExtended, restore_text
from unrolled.lab.data.tables.dialect import read_records


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Messier #39;s lawyer", "Messier's lawyer"),
        (" quot;Yes, quot; he said", '"Yes," he said'),
        ("gas.  quot;I am", 'gas. "I am'),
        ("T amp;N and S amp; P", "T&N and S& P"),
        ('a &lt;b&gt;bold&lt;/b&gt; &lt;A HREF="x"&gt;link&lt;/A&gt; word', "a  bold   link  word"),
        ("second\\team of $5 and \\$6", "second team of $5 and  $6"),
        ("5 &lt; 6 #36; in issue #39 and 7 > 6", "5 < 6$ in issue #39 and 7 > 6"),
    ],
)
def test_lost_signs_are_put_back(text, cleaned):
    assert restore_text(text) == cleaned


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ag_news").mkdir()
    rows = [f'"{i % 4 + 1}","Title {i}","He said \\$5, ""no"" #39;{i}"\n' for i in range(45)]
    (tmp_path / "ag_news" / "test.csv").write_text("".join(rows[40:]))
    (tmp_path / "ag_news" / "train_10k.csv").write_text("".join([*rows[:40], rows[44]]))
    joined = [row.replace('","H', "H") for row in (rows[3], rows[44])]
    new = '"2","Newer (AP)AP - more"\n'
    (tmp_path / "ag_news" / "train_extra_12k_joined.csv").write_text("".join([*joined, new, new, new]))
    return tmp_path


def test_title_and_description_are_one_text_and_nothing_of_the_test_is_trained_on(folder):
    dataset = AgNews().read(folder)
    assert [len(split) for split in (dataset.train, dataset.dev, dataset.test)] == [36, 4, 5]
    assert dataset.labels == ("world", "sports", "business", "science and technology")
    example = dataset.test[-1]
    assert example.tokens == ("Title", "44", "He", "said", "$", "5", ",", "``", "no", "''", "'", "44")
    assert example.label == 0
    assert example not in dataset.train + dataset.dev
    assert {int(example.tokens[1]) for example in (*dataset.train, *dataset.dev)} == set(range(40))


def test_the_larger_one_adds_what_is_new_and_keeps_dev_and_test(folder):
    small, large = AgNews().read(folder), AgNewsExtended().read(folder)
    assert (large.dev, large.test) == (small.dev, small.test)
    *old, new = large.train
    assert tuple(old) == small.train
    assert (new.tokens, new.label) == (("Newer", "(", "AP", ")", "AP", "-", "more"), 1)


@pytest.mark.parametrize("row", ['"5","title","text"\n', '"1","title"\n', '"1","a","b","c"\n'])
def test_what_is_no_row_is_named(folder, row):
    path = folder / "ag_news" / "test.csv"
    path.write_text(path.read_text() + row)
    with pytest.raises(DataError, match=r"test\.csv:6: expected a class from 1 to 4, title, description, found '"):
        AgNews().read(folder)


@pytest.mark.data
def test_the_real_files_have_the_counts_that_their_readme_gives(data_folder):
    rows = {
        name: [("".join("".join(fields).split()), code) for _, (code, *fields) in read_records(path)]
        for path in sorted((data_folder / "ag_news").iterdir())
        for name in [path.name.partition(".")[0]]
    }
    counts = {name: Counter(code for _, code in split) for name, split in rows.items()}
    assert counts["test"] == dict.fromkeys("1234", 1900)
    assert counts["train_10k"] == {"1": 2514, "2": 2504, "3": 2519, "4": 2463}
    assert counts["train_extra_12k_joined"] == dict.fromkeys("1234", 3000)
    test, train, extra = ({text for text, _ in rows[name]} for name in ("test", "train_10k", "train_extra_12k_joined"))
    assert len(train) == 9_997
    assert (len(train & test), len(extra & train), len(extra & test)) == (2, 2376, 3)


@pytest.mark.data
def test_the_real_splits_do_not_overlap(data_folder):
    small, large = AgNews().read(data_folder), AgNewsExtended().read(data_folder)
    assert [len(split) for split in (small.train, small.dev, small.test)] == [8_997, 1_000, 7_600]
    assert [len(split) for split in (large.train, large.dev, large.test)] == [18_550, 1_000, 7_600]
    assert Counter(example.label for example in large.test) == dict.fromkeys(range(4), 1900)
    tested = {example.tokens for example in large.test}
    assert not tested & {example.tokens for example in (*large.train, *large.dev)}
    # A repeated text of the 10,000 may fall to either side of the cut; three rows are repeats.
    assert len({example.tokens for example in large.dev} & {example.tokens for example in large.train}) <= 3
