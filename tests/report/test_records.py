from __future__ import annotations

import json
import math

import pytest
import torch

from unrolled.decomposition.attribution.triangle import Triangle
from unrolled.errors import FileError, NonFiniteError
from unrolled.report.json_records import save_json, to_json


@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_file_holds_the_whole_account_to_the_last_digit(build, tmp_path, all_hostile, bidirectional):
    attribution = build(all_hostile, bidirectional=bidirectional, mean=True, notes=("a note",))
    save_json(tmp_path / "a.json", [attribution])
    data = json.loads((tmp_path / "a.json").read_text(encoding="ascii"))
    assert (data["format"], data["version"]) == ("unrolled.accounts", 1)
    (record,) = data["accounts"]
    assert record["tokens"] == all_hostile
    assert record["ledger"] == dict(attribution.ledger)
    assert record["ngrams"] == attribution.to_records()
    assert record["notes"] == ["a note"]
    total = sum(ngram["contribution"] for ngram in record["ngrams"])
    assert total == pytest.approx(record["ledger"]["ngrams"], abs=1e-12)
    assert sum(record["token_scores"]) == pytest.approx(record["ledger"]["ngrams"], abs=1e-12)


def test_the_schema_names_every_field(build):
    (record,) = json.loads(to_json([build()]))["accounts"]
    import unrolled.report.json_records as module

    assert [name for name in record if f'"{name}"' not in module.__doc__] == []


def test_several_accounts_share_a_file(build):
    found = json.loads(to_json([build(), build(expansion="zero")]))["accounts"]
    assert [a["expansion"] for a in found] == ["path", "zero"]


def test_what_is_no_number_is_refused_and_nothing_is_written(build, tmp_path):
    broken = torch.full((1, 4, 4), math.nan, dtype=torch.float64)
    with pytest.raises(NonFiniteError, match="NaN"):
        save_json(tmp_path / "a.json", [build(triangle=Triangle(broken, broken))])
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_path_is_refused(build, tmp_path):
    with pytest.raises(FileError, match="folder"):
        save_json(tmp_path, [build()])


def test_long_ngrams_have_the_ends_of_their_text(build):
    tokens = [f"w{k}" for k in range(40)]
    attribution = build(tokens)
    for record, ngram in zip(attribution.to_records(), attribution.ngrams(), strict=True):
        words = tokens[record["start"] : record["stop"]]
        assert ngram.text == " ".join(words)
        whole = len(words) <= 24
        assert record["text"] == (ngram.text if whole else " ".join([*words[:10], "…", *words[-10:]]))


def test_the_file_of_a_long_text_grows_with_the_number_of_its_ngrams(build):
    sizes = [len(to_json([build(["a long word"] * time)])) / (time * (time + 1) / 2) for time in (60, 240)]
    assert sizes[1] < 1.3 * sizes[0]  # whole texts made it four times as large
