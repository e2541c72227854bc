"""Columns of texts, labels and lists in types that scikit-learn does not read: of numpy, pyarrow and polars."""

from __future__ import annotations

import numpy as np
import pytest

from toy_answers import MOODS, SMALL, TEXTS
from unrolled.errors import UsageError
from unrolled.sklearn import RecurrentClassifier

ROWS = [[1.0, 2.0, 3.0], [2.0, 1.0]] * 8


class Column:
    """A column as polars has it: a shape, a list of its values, and no ndim."""

    def __init__(self, values):
        self.values = values
        self.shape = (len(values),)

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return map(Column, self.values) if isinstance(self.values[0], list) else iter(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=object)

    def to_list(self):
        return list(self.values)


def arrow(values):
    return pytest.importorskip("pyarrow", reason="a column of pyarrow needs pyarrow").array(values)


def chunks(values):
    return pytest.importorskip("pyarrow", reason="a column of pyarrow needs pyarrow").chunked_array(
        [values[:5], values[5:]]
    )


def strings(values):
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("numpy 1 has no strings of any length")
    return np.array(values, dtype=np.dtypes.StringDType(na_object=None))


@pytest.mark.parametrize("column", [arrow, chunks, Column])
@pytest.mark.parametrize("examples", [TEXTS, ROWS], ids=["texts", "lists"])
def test_a_column_is_read_as_the_list_of_its_values(column, examples):
    plain = RecurrentClassifier(**SMALL).fit(examples, MOODS)
    found = RecurrentClassifier(**SMALL).fit(column(examples), column(MOODS))
    np.testing.assert_array_equal(found.predict_proba(column(examples)), plain.predict_proba(examples))
    assert found.classes_.tolist() == plain.classes_.tolist()
    assert found.score(column(examples), column(MOODS)) == plain.score(examples, MOODS)
    other = RecurrentClassifier(**SMALL).fit(column(examples), column(MOODS[::-1]))
    assert (other.predict_proba(examples) != plain.predict_proba(examples)).any()


def test_strings_of_any_length_are_labels_and_texts():
    plain = RecurrentClassifier(**SMALL).fit(TEXTS, MOODS)
    labels = strings(MOODS)
    found = RecurrentClassifier(**SMALL).fit(strings(TEXTS), labels)
    np.testing.assert_array_equal(found.predict_proba(TEXTS), plain.predict_proba(TEXTS))
    assert found.score(TEXTS, labels) == plain.score(TEXTS, MOODS)


@pytest.mark.parametrize("column", [arrow, chunks, Column, strings])
def test_what_is_missing_in_a_column_is_named(column):
    with pytest.raises(UsageError, match=r"y\[15\] is None; expected an answer for each example"):
        RecurrentClassifier(**SMALL).fit(TEXTS, column([*MOODS[:-1], None]))
    with pytest.raises(UsageError, match=r"texts\[15\] is None; expected strings"):
        RecurrentClassifier(**SMALL).fit(column([*TEXTS[:-1], None]), MOODS)


def test_a_table_of_pyarrow_is_refused_for_its_column():
    table = pytest.importorskip("pyarrow", reason="a column of pyarrow needs pyarrow").table({"text": TEXTS})
    with pytest.raises(UsageError, match="pass one column of a table"):
        RecurrentClassifier(**SMALL).fit(table, MOODS)
    assert RecurrentClassifier(**SMALL).fit(table["text"], MOODS).score(table["text"], MOODS) >= 0
