"""An account of the difference of two outputs, by ``against``."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.errors import UnknownNameError, UsageError

NAMES = ["bad", "fair", "good"]


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(9, 5), nn.LSTM(5, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.rnn(self.embed(ids))[0][:, -1])


IDS = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1], [8, 8, 1, 0]])


def tokens_of(found: unrolled.Account) -> Tensor:
    assert found.tokens is not None
    return found.tokens


def test_it_is_the_account_of_the_difference() -> None:
    model = Classifier()
    found = unrolled.account(model, IDS, target="good", against="bad", classes=NAMES)
    by_function = unrolled.account(model, IDS, target=lambda out: out[:, 2] - out[:, 0])
    assert found.target == "good rather than bad"
    assert torch.equal(found.output, by_function.output)
    assert torch.allclose(tokens_of(found), tokens_of(by_function), atol=1e-7)
    assert found.closes
    alone = unrolled.account(model, IDS, target=2)
    assert not torch.allclose(tokens_of(found), tokens_of(alone), atol=1e-3)


def test_of_no_target_the_predicted_class_of_each_example_is_compared() -> None:
    model = Classifier()
    highest = model(IDS).argmax(dim=1)
    other = min({0, 1, 2} - {int(each) for each in highest})
    found = unrolled.account(model, IDS, against=other)
    assert torch.allclose(found.output, model(IDS).gather(1, highest[:, None])[:, 0] - model(IDS)[:, other])
    assert (found.output > 0).all()
    with pytest.raises(UsageError, match=r"^example 0 is predicted to be output \d, which is against; name the target"):
        unrolled.account(model, IDS, against=int(highest[0]))


def test_a_class_against_itself_a_function_and_an_unknown_name_are_refused() -> None:
    model = Classifier()
    with pytest.raises(UsageError, match="good against itself"):
        unrolled.account(model, IDS, target="good", against=2, classes=NAMES)
    with pytest.raises(UsageError, match="the target is a function; subtract in the function"):
        unrolled.account(model, IDS, target=lambda out: out[:, 0], against=1)
    with pytest.raises(UnknownNameError, match="unknown class 'god'; did you mean 'good'"):
        unrolled.account(model, IDS, target="bad", against="god", classes=NAMES)
    with pytest.raises(UsageError, match="against is 3; expected 0 to 2"):
        unrolled.account(model, IDS, target=0, against=3)


def test_a_models_own_argument_of_that_name_goes_through_model_kwargs() -> None:
    class Scaled(Classifier):
        def forward(self, ids: Tensor, against: Tensor | None = None) -> Tensor:
            outputs = super().forward(ids)
            return outputs if against is None else outputs - against

    shift: Any = torch.tensor([[1.0, 2.0, 3.0]])
    found = unrolled.account(Scaled(), IDS, target=2, against=0, model_kwargs={"against": shift})
    plain = Scaled()(IDS)
    assert torch.allclose(found.output, plain[:, 2] - plain[:, 0] - 2.0)
    with pytest.raises(UsageError, match="pass the model's own as model_kwargs"):
        unrolled.account(Scaled(), IDS, target=2, against=shift)
