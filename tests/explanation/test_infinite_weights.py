"""Where a number is NaN, the error names the weight that is; where no weight is, it names none."""

from __future__ import annotations

import re

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


class ByStep(Reader):
    """Has a step of its own, whose weights have names of one letter."""

    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.u = nn.Parameter(torch.randn(4, 5)), nn.Parameter(torch.randn(5, 5))

        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            return torch.tanh(x @ self.w + h @ self.u)

    def __init__(self) -> None:
        super().__init__()
        self.rnn = self.Step()

    def forward(self, ids: Tensor) -> Tensor:
        h = torch.zeros(len(ids), 5)
        for x in self.embed(ids).unbind(1):
            h = self.rnn(x, h)
        return self.head(h)


class OnAGraph(Reader):
    """Has a weight that is sparse."""

    def __init__(self) -> None:
        super().__init__()
        self.edges = nn.Parameter(torch.eye(5).to_sparse(), requires_grad=False)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(torch.sparse.mm(self.edges, self.rnn(self.embed(ids))[1][-1].T).T)


NAMES = {
    Reader: ["embed.weight", "rnn.weight_hh_l0", "head.weight"],
    ByStep: ["embed.weight", "rnn.w", "rnn.u", "head.weight"],
    OnAGraph: ["embed.weight", "edges", "head.weight"],
}


@pytest.mark.parametrize("call", [unrolled.explain, unrolled.account])
@pytest.mark.parametrize(
    ("kind", "name", "target"),
    [
        (kind, name, target)
        for kind, names in NAMES.items()
        for name in names
        for target in ((0,) if kind is OnAGraph else (0, 1))
    ],
)
def test_the_weight_is_named(kind, name, target, call):
    model = kind()
    weight = model.get_parameter(name).data
    (weight._values() if weight.is_sparse else weight)[1 if name == "embed.weight" else 0] = float("nan")
    shown = name.removeprefix("rnn.") if (kind, call) == (Reader, unrolled.explain) else name
    with pytest.raises(NonFiniteError, match=rf"weights {re.escape(shown)} hold NaN or infinity") as told:
        call(model, IDS, target=target)
    assert "\n" not in str(told.value)
    assert str(told.value).count(" hold NaN or infinity") <= 2
    assert call(kind(), IDS, target=target)  # the control


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
