"""Where a number is NaN, the error names the weight that is; where no weight is, it names none."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.errors import NonFiniteError, UnknownNameError

IDS = torch.tensor([[1, 2, 3]])


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(9, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.rnn(self.embed(ids))[1][-1])


@pytest.mark.parametrize("call", [unrolled.explain, unrolled.account])
@pytest.mark.parametrize("target", [0, 1])
@pytest.mark.parametrize("name", ["embed.weight", "rnn.weight_hh_l0", "head.weight"])
def test_the_weight_is_named(name, target, call):
    model = Reader()
    weight = model.get_parameter(name).data
    weight[1 if name == "embed.weight" else 0] = float("nan")
    with pytest.raises(NonFiniteError, match=name.rpartition(".")[2]) as told:
        call(model, IDS, target=target)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("call", [unrolled.explain, unrolled.account])
def test_a_weight_that_is_not_read_stops_nothing_and_an_output_without_one_names_none(call):
    model = Reader()
    model.embed.weight.data[8] = float("inf")
    assert call(model, IDS, target=1)  # no token reads it

    class Divides(Reader):
        def forward(self, ids: Tensor) -> Tensor:
            return super().forward(ids) / 0.0

    with pytest.raises(NonFiniteError) as told:
        call(Divides(), IDS, target=1)
    assert "weight" not in str(told.value)


def test_of_submodules_the_model_itself_is_none():
    with pytest.raises(UnknownNameError, match=r"expected one of: embed, head, rnn$"):
        unrolled.account(Reader(), IDS, target=1, of="network")
