"""Numbers in other forms than floating-point tensors: flags and integers beside them, arrays, lists and data frames."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError

FLAG = torch.tensor([[[True], [False], [True], [True], [False]]], device="cpu")
FORMS = {
    "booleans": FLAG,
    "zeros and ones": FLAG.long(),
    "days of a week": torch.tensor([[[3], [4], [5], [6], [0]]], device="cpu"),
    "floats": FLAG.float(),
}


class Beside(nn.Module):
    """Reads numbers, and flags beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 5, batch_first=True)
        self.head = nn.Linear(5, 1)

    def forward(self, x, flag):
        return self.head(self.rnn(torch.cat([x, flag], dim=-1))[0][:, -1])


class Alone(Beside):
    """Makes floating-point numbers of whatever it reads."""

    def forward(self, x):
        return self.head(self.rnn(x.float())[0][:, -1])


@pytest.fixture
def series():
    torch.manual_seed(0)
    return torch.randn(1, 5, 3, device="cpu")


@pytest.mark.parametrize(
    ("form", "rest_of"),
    [
        ("booleans", "held results and biases"),
        ("zeros and ones", "held results and biases"),
        ("days of a week", "other numbers and biases"),
        ("floats", "biases"),
    ],
)
def test_the_rest_of_a_step_says_whether_it_holds_more_than_biases(series, form, rest_of):
    found = unrolled.explain(Beside().eval(), series, FORMS[form])
    assert found.features.rest_of == rest_of
    own = [name for name in found.features.names if name.startswith("flag, ")]
    assert bool(own) == (form == "floats")


@pytest.mark.parametrize("form", FORMS)
def test_an_account_gives_flags_a_row_or_says_that_they_are_held(series, form):
    account = unrolled.account(Beside().eval(), series, FORMS[form])
    assert account.closes
    assert ("1" in account.features) == (form in ("floats", "days of a week"))
    assert any("masks" in note for note in account.notes) == ("1" not in account.features)


@pytest.mark.parametrize("form", ["booleans", "zeros and ones", "days of a week"])
def test_integers_alone_have_no_features_and_the_message_says_how_they_would_have(form):
    model, given = Alone().eval(), FORMS[form].expand(1, 5, 4).contiguous()
    found = unrolled.explain(model, given)
    assert found.features is None
    assert "pass numbers as floating-point tensors" in found.no_features
    with pytest.raises(UsageError, match="pass numbers as floating-point tensors"):
        unrolled.explain(model, given, features=list("abcd"))
    floats = unrolled.explain(model, given.float(), features=list("abcd"))
    assert floats.features is not None
    assert floats.ledger.logit == found.ledger.logit


def test_booleans_alone_are_masks_in_an_account_and_the_message_says_so():
    with pytest.raises(UsageError, match="pass booleans"):
        unrolled.account(Alone().eval(), FLAG.expand(1, 5, 4).contiguous())


@pytest.mark.parametrize("take", [unrolled.explain, unrolled.account])
def test_arrays_lists_and_frames_are_refused_by_their_kind(take, series):
    pandas = pytest.importorskip("pandas", reason="data frames need pandas")
    model, numbers = Alone().eval(), series.expand(1, 5, 3).repeat(1, 1, 2)[..., :4]
    for given, kind in [
        (numbers.numpy(), "an ndarray"),
        (numbers.tolist(), "a list"),
        (pandas.DataFrame(numbers[0].numpy()), "a DataFrame"),
    ]:
        with pytest.raises(UsageError, match=f"an argument that is {kind}.*torch.tensor"):
            take(model, given)


@pytest.mark.parametrize("take", [unrolled.explain, unrolled.account])
def test_a_model_may_read_an_array_itself_and_the_mistakes_of_others_keep_their_message(take, series):
    class ReadsArray(Alone):
        def forward(self, x, *, bias):
            return super().forward(x) + torch.from_numpy(bias)

    model, numbers = ReadsArray().eval(), series.repeat(1, 1, 2)[..., :4]
    found = take(model, numbers, bias=np.ones(1, dtype="float32"))
    assert found.closes

    class Broken(ReadsArray):
        def forward(self, x, *, bias):
            raise AttributeError("its own mistake")

    class Transposes(Alone):
        def forward(self, x):
            return super().forward(x.transpose(0, 1))

    with pytest.raises(UsageError, match="an argument that is an ndarray"):
        take(Transposes().eval(), numbers.numpy())
    with pytest.raises(AttributeError, match="its own mistake"):
        take(Broken().eval(), numbers, bias=torch.ones(1, device="cpu"))


def test_the_numbers_are_a_data_frame_whose_rows_add_up_to_the_steps(series):
    pytest.importorskip("pandas", reason="data frames need pandas")
    found = unrolled.explain(Beside().eval(), series, FORMS["floats"], tokens=list("abcde"))
    frame = found.features_to_frame()
    assert list(frame.columns) == ["step", "name", "feature", "value", "contribution"]
    assert len(frame) == 5 * (4 + 1)
    sums = frame.groupby("step")["contribution"].sum()
    assert sums.tolist() == pytest.approx(found.token_scores.tolist(), abs=1e-12)
    own = frame[frame["feature"] == "x, feature 2"]
    assert own["value"].tolist() == pytest.approx(series[0, :, 2].tolist())
    assert own["name"].tolist() == list("abcde")
    with pytest.raises(UsageError, match="pass numbers as floating-point tensors"):
        unrolled.explain(Alone().eval(), torch.ones(1, 5, 4, dtype=torch.long, device="cpu")).features_to_frame()


class Calendar(nn.Module):
    """Reads the hour as a number, and by a table beside its network."""

    def __init__(self, table):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head = nn.GRU(3, 5, batch_first=True), nn.Linear(5, 2)
        self.table = nn.Embedding(24, 2) if table else None

    def forward(self, x, hour):
        out = self.head(self.rnn(torch.cat([x, hour[..., None] / 24], dim=-1))[0][:, -1])
        return out if self.table is None else out + self.table(hour[:, -1])


def test_numbers_beside_categories_have_the_contributions_that_they_have_without_the_table():
    x, hour = torch.randn(3, 4, 2), torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]])
    found, expected = (unrolled.explain_batch(Calendar(table), x, hour, target=1) for table in (True, False))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.features.scores, other.features.scores)
        assert abs(one.ledger.logit - other.ledger.logit) > 1e-3  # the control: the table is read
