"""The page of an account of a batch: every example, or the one that is asked for."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

import unrolled
from unrolled.report.formatting import minus, signed
from whole_model_zoo import Classifier, ids


@pytest.fixture
def account():
    torch.manual_seed(0)
    model = Classifier(nn.GRU, 2, True).double()
    words = [["not", "<b>bad</b>", "\u202eevil\x1b[31m", ""], list("abcd")]
    return unrolled.account(model, ids(2, 4), target=1, tokens=words)


def test_the_page_of_a_batch_has_all_examples_by_one_scale(account, tmp_path):
    page = account.save_html(tmp_path / "all.html").read_text(encoding="utf-8")
    assert re.findall(r'<details class="example"( open)?>', page) == [" open", ""]
    of_each = page.split('<details class="example"')[1:]
    assert "accounts of 2 outputs" in page
    assert "one scale for all" in page
    limit = max(account.view(k).limit for k in range(2))
    for number, part in enumerate(of_each):
        view = account.view(number)
        words = re.findall(r'<bdi class="word s\d+">(.*?)</bdi>', part)
        assert len(words) == 4
        assert (words[0] == "a") is bool(number)
        assert f'<b class="number">{minus(signed(view.output))}</b>' in part
        assert all(f"{minus(signed(value))}</small>" in part for value in view.groups[0].values)
        assert f"Colour scale from -{limit:g} to +{limit:g}" in part.replace("−", "-")
        assert f'aria-label="Ledger of example {number}"' in part
    assert account.view(0).limit != account.view(1).limit


@pytest.mark.parametrize("example", [0, 1])
def test_the_page_of_one_example_has_no_other(account, tmp_path, example):
    """The control of the page of a batch; the page of a batch of one is such a page."""
    page = account.save_html(tmp_path / "one.html", example).read_text(encoding="utf-8")
    assert "account of one output" in page
    assert 'class="example"' not in page
    assert page.count(">c</bdi>") == example
    one = account[example].save_html(tmp_path / "alone.html").read_text(encoding="utf-8")
    assert page.replace(f'<p class="quiet">example {example} of a batch of 2</p>', "") == one
