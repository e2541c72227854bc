"""A tensor that a model keeps and writes into at each call carries value in every held run, not in the first alone."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unrolled

IDS = torch.tensor([3])
BY_TWO_RUNS = [("softmax", "secant"), ("log_softmax", "secant"), ("tanh", "mean(secant,shares)")]


class OneHot(nn.Module):
    """Writes its id as a one into a tensor that it keeps, or makes such a tensor at each call."""

    def __init__(self, end: str, keeps: bool, registers: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head, self.end, self.keeps = nn.GRU(6, 4), nn.Linear(4, 6), end, keeps
        if registers:
            self.register_buffer("kept", torch.zeros(1, 6))
        else:
            self.kept = torch.zeros(1, 6)

    def forward(self, ids: Tensor) -> Tensor:
        kept = self.kept if self.keeps else torch.ones(1, 6)
        kept.zero_()
        vectors = kept.scatter_(1, ids.view(-1, 1), 1)
        logits = self.head(self.rnn(vectors[None])[0][0])
        return logits.tanh() if self.end == "tanh" else getattr(logits, self.end)(-1)


@pytest.mark.parametrize("registers", [True, False])
@pytest.mark.parametrize(("end", "expansion"), BY_TWO_RUNS)
def test_a_kept_tensor_is_written_in_every_held_run(end: str, expansion: str, registers: bool) -> None:
    model = OneHot(end, True, registers)
    kept = unrolled.account(model, IDS, target=2, expansion=expansion)
    made = unrolled.account(OneHot(end, False, registers), IDS, target=2, expansion=expansion)
    assert kept.closes
    assert bool(kept.texts["0"].any())
    assert torch.equal(kept.texts["0"], made.texts["0"])  # the control makes the tensor anew
    assert kept.notes == made.notes
    assert not model.kept.any()
    assert not model.kept.requires_grad


def test_a_kept_tensor_that_is_not_written_stays_a_number_of_the_model() -> None:
    class Added(OneHot):
        kept_logits: Tensor

        def forward(self, ids: Tensor) -> Tensor:
            return super().forward(ids) + self.kept_logits

    model = Added("softmax", True, True)
    model.kept_logits = model.head.bias * 2  # autograd follows it, from before the run
    found = unrolled.account(model, IDS, target=2)
    assert found.closes
    assert float(sum(found.constants.values())) == pytest.approx(float(model.kept_logits[2].detach()) + 1 / 6, abs=1e-6)
