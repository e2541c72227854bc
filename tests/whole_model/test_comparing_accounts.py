"""Two accounts of one output are compared number by number."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError
from whole_model_zoo import Classifier, ids


def test_expansions_that_ask_the_same_agree_and_accounts_of_different_outputs_are_refused():
    torch.manual_seed(0)
    model, tokens = Classifier(nn.LSTM).double(), ids(2, 5)
    secant, path = (unrolled.account(model, tokens, target=1, expansion=name) for name in ("secant", "path"))
    found = secant.compare(path)
    assert found["correlation"] > 0.99
    assert 0 < found["largest"] < 1e-2
    with pytest.raises(UsageError, match="accounts are of different outputs"):
        secant.compare(unrolled.account(model, tokens[:1], target=1))


@pytest.mark.parametrize("wrong", [slice(0, 2), 1.0, "1", None])
def test_what_is_no_number_of_an_example_and_what_is_no_account_are_refused(wrong):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    found = unrolled.account(model, torch.ones(2, 3), target=1)
    with pytest.raises(UsageError, match="the index of an example is"):
        found[wrong]
    with pytest.raises(UsageError, match="expected an account to compare with, found a"):
        found.compare(wrong)
    assert len(found[torch.tensor(1)]) == 1  # the control
