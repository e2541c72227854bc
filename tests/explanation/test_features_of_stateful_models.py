"""A model that changes itself before its network starts each run from one state, also after one that ended there."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unrolled

SERIES = torch.randn(1, 6, 3, generator=torch.Generator().manual_seed(1))


class Differences(nn.Module):
    """Reads how much each step differs from the one before, which may be the last of the call before."""

    def __init__(self, goes_on: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head = nn.GRU(3, 5, batch_first=True), nn.Linear(5, 2)
        self.goes_on, self.last = goes_on, torch.zeros(1, 1, 3)

    def forward(self, series: Tensor) -> Tensor:
        moved = series - torch.cat((self.last, series[:, :-1]), dim=1)
        if self.goes_on:
            self.last = series[:, -1:].detach()
        output: Tensor = self.head(self.rnn(moved)[0][:, -1])
        return output


@pytest.mark.parametrize("expansion", ["secant", "shares"])
def test_features_are_those_of_a_model_that_changes_nothing(expansion: str) -> None:
    model = Differences(goes_on=True)
    found, plain = (
        unrolled.explain(each, SERIES, target=1, expansion=expansion) for each in (model, Differences(False))
    )
    assert found.features is not None
    assert plain.features is not None
    assert found.features.names == plain.features.names
    assert torch.equal(found.features.values, plain.features.values)
    assert torch.equal(found.features.scores, plain.features.scores)
    assert not bool(model.last.any())  # it is given back as it was
    model(SERIES)  # the control: from another state it has other features
    other = unrolled.explain(model, SERIES, target=1, expansion=expansion).features
    assert other is not None
    assert not torch.allclose(other.scores, plain.features.scores)


class CatchesEverything(Differences):
    """Goes on where its network fails, in whatever way, and notes from where each of its runs starts."""

    def __init__(self, fails: bool) -> None:
        super().__init__(goes_on=True)
        self.fails = fails

    def forward(self, series: Tensor) -> Tensor:
        STARTED.append(bool(self.last.any()))
        try:
            return super().forward(series)
        except BaseException:
            if not self.fails:
                raise
            output: Tensor = self.head(torch.zeros(len(series), 5))
            return output


STARTED: list[bool] = []


@pytest.mark.parametrize("fails", [True, False])
def test_a_model_that_catches_everything_starts_each_run_from_one_state(fails: bool) -> None:
    STARTED.clear()
    model = CatchesEverything(fails)
    unrolled.explain(model, SERIES, target=1)
    assert len(STARTED) > 2
    assert not any(STARTED)
    for _ in range(2):
        model(SERIES)
    assert STARTED[-1]  # the control: by itself it goes on
