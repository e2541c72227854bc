"""What an account shows of several arguments is named as the model's forward names them; else by their places."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unrolled


class Networks(nn.Module):
    """Read two series."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.of_load, self.of_weather = nn.GRU(2, 4, batch_first=True), nn.GRU(3, 4, batch_first=True)
        self.head = nn.Linear(8, 1)

    def read(self, load: Tensor, weather: Tensor) -> Tensor:
        states = self.of_load(load)[0][:, -1], self.of_weather(weather)[0][:, -1]
        logits: Tensor = self.head(torch.cat(states, dim=-1))
        return logits


class Forecaster(Networks):
    """Names both series."""

    def forward(self, load: Tensor, weather: Tensor) -> Tensor:
        return self.read(load, weather)


class OfAny(Networks):
    """Says no names of its arguments."""

    def forward(self, *series: Tensor) -> Tensor:
        return self.read(*series)


class OfOne(Networks):
    """Takes both series in one dictionary."""

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        return self.read(batch["load"], batch["weather"])


LOAD, WEATHER = torch.ones(1, 5, 2), torch.ones(1, 4, 3)


def steps(found: unrolled.Account) -> list[str]:
    return [group.name for group in found.view().groups]


def test_arguments_are_shown_by_the_names_of_the_forward() -> None:
    found = unrolled.account(Forecaster(), LOAD, WEATHER)
    assert steps(found) == ["steps of load", "steps of weather"]
    assert "features of weather, all steps together" in str(found)
    assert list(found.features) == ["0", "1"]  # the keys are the places, as in the records
    assert {record["source"] for record in found.to_records() if record["kind"] == "feature"} == {"0", "1"}


def test_a_keyword_is_shown_as_it_was_given() -> None:
    assert steps(unrolled.account(Forecaster(), LOAD, weather=WEATHER)) == ["steps of load", "steps of weather"]


def test_a_forward_without_names_has_places() -> None:
    assert steps(unrolled.account(OfAny(), LOAD, WEATHER)) == ["steps of 0", "steps of 1"]


def test_parts_of_an_argument_are_shown_by_its_name() -> None:
    found = unrolled.account(OfOne(), {"load": LOAD, "weather": WEATHER})
    assert steps(found) == ["steps of batch.load", "steps of batch.weather"]


def test_a_hook_that_may_change_the_arguments_leaves_their_places() -> None:
    model = Forecaster()
    model.register_forward_pre_hook(lambda _, args: args[::-1])
    assert steps(unrolled.account(model, WEATHER, LOAD)) == ["steps of 0", "steps of 1"]


class Sequence(nn.Sequential):
    """Its modules have numbers as names, as arguments have places."""

    def forward(self, first: Tensor) -> Tensor:
        return super().forward(first)


@pytest.mark.parametrize("of", [None, "0"])
def test_a_module_that_is_the_source_is_no_argument(of: str | None) -> None:
    torch.manual_seed(0)
    model = Sequence(nn.Linear(3, 4), nn.Linear(4, 2))
    found = unrolled.account(model, torch.ones(1, 3), target=1, of=of)
    assert found.argument_names == ({"0": "first"} if of is None else {})
