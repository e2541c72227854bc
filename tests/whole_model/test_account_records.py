"""Every contribution is a record, and the records of an example sum to its output."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import FileError, UsageError
from whole_model_zoo import Classifier, Siamese, ids


class Forecaster(nn.Module):
    """Reads a series and some numbers that have no step."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(2, 4, batch_first=True)
        self.head = nn.Linear(7, 1)

    def forward(self, series, static, start):
        return self.head(torch.cat([self.rnn(series, start)[1][0], static], dim=1))


@pytest.fixture
def forecast():
    torch.manual_seed(0)
    start = torch.randn(1, 2, 4).double()
    given = torch.randn(2, 3, 2).double(), torch.randn(2, 3).double(), start
    return unrolled.account(Forecaster().double(), *given, target=0, tokens=[["mon", "tue", "wed"]] * 2)


def total(records, **wanted):
    chosen = (each for each in records if all(each[key] == value for key, value in wanted.items()))
    return math.fsum(each["contribution"] for each in chosen)


def test_the_records_of_an_example_sum_to_its_output(forecast):
    records = forecast.to_records()
    for example, output in enumerate(forecast.output.tolist()):
        assert total(records, example=example) == pytest.approx(output, abs=1e-12)
    inputs = total(records) - total(records, kind="feature")
    assert inputs != pytest.approx(float(forecast.output.sum()), abs=1e-3)


def test_a_number_is_found_by_its_argument_step_and_feature(forecast):
    records = forecast.to_records()
    for example in range(2):
        for step, label in enumerate(["mon", "tue", "wed"]):
            for feature in range(2):
                where = {"example": example, "source": "0", "step": step, "label": label}
                found = total(records, **where, feature=f"feature {feature}")
                assert found == float(forecast.features["0"][example, step, feature])
        for feature in range(3):
            found = total(records, example=example, source="1", step=None, feature=f"feature {feature}")
            assert found == float(forecast.features["1"][example, feature])
    biases = {name: total(records, kind="bias", source=name) for name in forecast.biases}
    assert biases == pytest.approx({name: float(value.sum()) for name, value in forecast.biases.items()})


def test_a_token_is_found_by_its_text_and_place():
    torch.manual_seed(0)
    account = unrolled.account(Siamese().double(), ids(2, 4), ids(2, 3), target=0)
    records = [each for each in account.to_records() if each["kind"] == "token"]
    assert len(records) == 2 * (4 + 3)
    for name, part in account.texts.items():
        for example in range(2):
            for step in range(part.shape[1]):
                (found,) = (
                    each for each in records if (each["example"], each["source"], each["step"]) == (example, name, step)
                )
                assert found["contribution"] == float(part[example, step])
    assert [each["label"] for each in records] == [word for words in account.words for word in words]


def leaves(nested):
    return [value for each in nested for value in leaves(each)] if isinstance(nested, list) else [nested]


def test_the_file_holds_every_contribution_by_name(forecast, tmp_path):
    saved = json.loads(forecast.save_json(tmp_path / "account.json").read_text())
    assert saved["format"] == "unrolled.whole_model_account"
    assert len(saved["examples"]) == 2
    for one, written in zip(forecast, saved["examples"], strict=True):
        assert written["ledger"] == one.ledger
        sums = {
            "inputs": math.fsum(leaves([each["contributions"] for each in written["arguments"]])),
            "biases": math.fsum(written["biases"].values()),
            "constants": math.fsum(written["constants"].values()),
        }
        assert sums == pytest.approx({name: one.ledger[name] for name in sums}, abs=1e-12)
        assert sums["inputs"] != pytest.approx(sums["biases"], abs=1e-3)  # the control
        series, static, _ = written["arguments"]
        assert (series["name"], series["labels"], series["tokens"]) == ("0", ["mon", "tue", "wed"], False)
        assert series["contributions"] == one.features["0"][0].tolist()
        assert (static["labels"], static["contributions"]) == ([], one.features["1"][0].tolist())
        assert written["closes"] is True
        assert set(written["biases"]) == set(one.biases)


def test_the_file_of_texts_has_their_tokens(tmp_path):
    torch.manual_seed(0)
    account = unrolled.account(Siamese().double(), ids(2, 4), ids(2, 3), target=0)
    written = json.loads(account.save_json(tmp_path / "account.json").read_text())["examples"]
    assert [tuple(word for part in one["arguments"] for word in part["labels"]) for one in written] == [*account.words]
    first, second = (part["contributions"] for part in written[1]["arguments"])
    assert (first, second) == tuple(part[1].tolist() for part in account.texts.values())
    with pytest.raises(FileError, match="nowhere"):
        account.save_json(tmp_path / "nowhere" / "account.json")


def test_records_are_plain_and_a_frame_has_one_row_for_each(monkeypatch):
    torch.manual_seed(0)
    account = unrolled.account(Classifier(nn.GRU, 1, False), ids(2, 4), target=1)
    records = account.to_records()
    assert json.loads(json.dumps(records)) == records
    pytest.importorskip("pandas", reason="needs the extra [tables]")
    frame = account.to_frame()
    assert list(frame.columns) == ["example", "kind", "source", "step", "label", "feature", "contribution"]
    sums = frame.groupby("example")["contribution"].sum()
    assert sums.tolist() == pytest.approx(account.output.tolist(), abs=1e-5)
    monkeypatch.setattr("unrolled.report.frames.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'unrolled\[tables\]'"):
        account.to_frame()
