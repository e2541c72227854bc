"""Names of features are those of the series, also where a model receives its hidden state beside it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.errors import ShapeError

SERIES, STATE = torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(0)), torch.ones(1, 1, 4)


class Policy(nn.Module):
    """Reads a series, and the state that the calls before left."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, series: Tensor, state: tuple[Tensor, Tensor]) -> Tensor:
        actions: Tensor = self.head(self.rnn(series, state)[0][:, -1])
        return actions


GIVEN = (SERIES, (STATE / 2, STATE / 4))
NAMES = ["position", "velocity", "angle"]


def test_names_of_the_first_argument_are_its_alone() -> None:
    found = unrolled.account(Policy(), *GIVEN, target=1, features=NAMES)
    assert found.feature_names == {"0": tuple(NAMES)}
    explained = unrolled.explain(Policy(), *GIVEN, target=1, features=NAMES).features
    assert explained is not None
    assert explained.names == tuple(NAMES)  # the same names fit both
    labels = {row["feature"] for row in found.to_records() if row["source"] == "1.0"}
    plain = unrolled.account(Policy(), *GIVEN, target=1)
    assert labels == {row["feature"] for row in plain.to_records() if row["source"] == "1.0"}


def test_names_of_all_arguments_stand_one_after_the_other() -> None:
    names = [*NAMES, *(f"{part}{k}" for part in "hc" for k in range(4))]
    found = unrolled.account(Policy(), *GIVEN, target=1, features=names)
    assert found.feature_names == {"0": tuple(NAMES), "1.0": tuple(names[3:7]), "1.1": tuple(names[7:])}


@pytest.mark.parametrize("count", [2, 4, 10])
def test_other_numbers_of_names_are_refused_with_the_numbers_of_each_argument(count: int) -> None:
    message = f"features are {count} names; expected 11, .* 3 of argument 0, then 4 of argument 1.0, then 4 of argument"
    with pytest.raises(ShapeError, match=message):
        unrolled.account(Policy(), *GIVEN, target=1, features=list("abcdefghij"[:count]))
