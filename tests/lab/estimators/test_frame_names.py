"""Data frames name the numbers of a step, and frames with other columns are refused; numbers have no names."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.errors import UsageError
from unrolled.sklearn import RecurrentRegressor

pd = pytest.importorskip("pandas", reason="data frames need the extra [tables]")

NAMES = ["load [kW]", "wind"]
VALUES = np.random.default_rng(0).normal(size=(24, 6, 2))
TOTALS = VALUES[:, :, 0].sum(axis=1)


def regressor():
    return RecurrentRegressor(hidden=4, epochs=2, random_state=0)


def frames(names=NAMES):
    return [pd.DataFrame(dict(zip(NAMES, one.T, strict=True)))[names] for one in VALUES]


def test_frames_are_learned_as_their_numbers_and_name_the_features():
    plain, named = regressor().fit(VALUES, TOTALS), regressor().fit(frames(), TOTALS)
    assert np.array_equal(plain.predict(VALUES), named.predict(frames()))
    assert named.feature_names_in_.tolist() == NAMES
    assert named.explain(frames()[0]).features.names == tuple(NAMES)
    assert named.explain(VALUES[0]).features.names == tuple(NAMES)
    assert named.explain(VALUES[0], features=["a", "b"]).features.names == ("a", "b")
    assert plain.explain(VALUES[0]).features.names == ("feature 0", "feature 1")
    assert not hasattr(plain, "feature_names_in_")
    named.fit(VALUES, TOTALS)
    assert not hasattr(named, "feature_names_in_")  # those of an earlier training are forgotten


def test_columns_in_another_order_would_be_other_numbers_and_are_refused():
    fit = regressor().fit(frames(), TOTALS)
    swapped = frames(NAMES[::-1])
    assert not np.allclose(fit.predict([one.to_numpy() for one in swapped]), fit.predict(frames()))
    for call in (lambda: fit.predict(swapped), lambda: fit.explain(swapped[0]), lambda: fit.score(swapped, TOTALS)):
        with pytest.raises(UsageError, match=r"columns of the training in another order.*load \[kW\], wind"):
            call()
    renamed = [one.rename(columns={"wind": "rain"}) for one in frames()]
    with pytest.raises(UsageError, match="an example has a column 'rain', which the training has not"):
        fit.predict(renamed)
    with pytest.raises(UsageError, match="sequence 2 has the columns of sequence 1 in another order"):
        regressor().fit([frames()[0], *swapped[1:]], TOTALS)


def test_the_columns_of_rows_name_the_steps():
    wide = pd.DataFrame(VALUES[:, :, 0], columns=[f"{hour}:00" for hour in range(6)])
    found = regressor().fit(wide, TOTALS).explain(VALUES[0, :, 0])
    assert found.tokens == tuple(wide.columns)


def test_a_row_whose_columns_have_another_order_is_refused():
    wide = pd.DataFrame(VALUES[:, :, 0], columns=[f"{hour}:00" for hour in range(6)])
    fit, row = regressor().fit(wide, TOTALS), wide.iloc[0]
    assert fit.explain(row).ledger == fit.explain(row.to_numpy()).ledger == fit.explain(row.tolist()).ledger
    with pytest.raises(UsageError, match="an example has the columns of the training in another order"):
        fit.explain(row[::-1])


@pytest.mark.parametrize(
    ("odd", "shown"),
    [("aus", "'aus'"), (pd.Timestamp("2024-01-01"), "'2024-01-01 00:00:00'"), ("", "''")],
)
def test_what_is_no_number_in_a_sequence_is_named(odd, shown):
    mixed = [one.astype(object) for one in frames()]
    mixed[3].iloc[2, 1] = odd
    with pytest.raises(UsageError, match=f"sequence 4 holds {shown}; expected numbers"):
        regressor().fit(mixed, TOTALS)
    assert regressor().fit([one.astype(str) for one in frames()], TOTALS)  # numbers that are written as strings


def test_the_note_says_what_a_contribution_is_of():
    fit = regressor().fit(VALUES, TOTALS)
    (note,) = [note for note in fit.explain(VALUES[0]).notes if "mean of the training" in note]
    assert note in str(fit.explain(VALUES[0])).replace("\n", " ")
    mean = VALUES.reshape(-1, 2).mean(axis=0)
    assert abs(fit.explain(np.tile(mean, (6, 1))).feature_scores).max() < 1e-9  # at the mean nothing is contributed
    assert abs(fit.explain(np.tile(mean + 1, (6, 1))).feature_scores).max() > 1e-3


@pytest.mark.parametrize("form", [np.asarray, lambda table: pd.DataFrame(table, columns=["load", "heat"])])
def test_a_note_says_that_the_columns_of_a_table_are_steps(form):
    said = "each row was read as a series of one feature, its columns as the steps; of a table whose rows are steps"
    table = VALUES[:, 0, :]
    fit = regressor().fit(form(table), TOTALS)
    assert [said in note for note in fit.explain(table[0]).notes].count(True) == 1
    assert said in " ".join(fit.explain_batch(form(table))[0].notes)
    for sequences in (table[:, None, :], [row[:, None] for row in table], [row[None] for row in table]):
        assert said not in " ".join(regressor().fit(sequences, TOTALS).explain(sequences[0]).notes)
